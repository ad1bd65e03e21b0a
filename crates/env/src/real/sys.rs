//! The few system calls that neither std nor `socket2` offer.

use std::ffi::{CStr, CString};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// A descriptor that other threads write to in order to wake this one.
#[expect(unsafe_code, reason = "eventfd has no safe wrapper in std")]
pub(super) fn eventfd() -> io::Result<OwnedFd> {
    // SAFETY: no pointers; the descriptor returned is ours alone.
    unsafe {
        Ok(OwnedFd::from_raw_fd(check(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK))?))
    }
}

/// Adds one to an eventfd.
#[expect(unsafe_code, reason = "eventfd has no safe wrapper in std")]
pub(super) fn eventfd_ring(fd: &OwnedFd) {
    // SAFETY: the descriptor is open; the call takes no pointers of ours. It fails only when the
    // counter is full, and then the reader has a wake-up pending anyway.
    unsafe {
        libc::eventfd_write(fd.as_raw_fd(), 1);
    }
}

/// Binds the calling thread to the `n`-th (modulo their number) CPU that it may run on.
#[expect(unsafe_code, reason = "affinity has no safe wrapper in std")]
pub(super) fn pin_to(n: usize) -> io::Result<()> {
    let size = size_of::<libc::cpu_set_t>();
    // SAFETY: a cpu_set_t of zeros is the empty set; the pointers are to live locals of the size
    // given.
    unsafe {
        let mut allowed: libc::cpu_set_t = std::mem::zeroed();
        check(libc::sched_getaffinity(0, size, &mut allowed))?;
        let cpus: Vec<usize> =
            (0..libc::CPU_SETSIZE as usize).filter(|&cpu| libc::CPU_ISSET(cpu, &allowed)).collect();
        let Some(&cpu) = cpus.get(n % cpus.len().max(1)) else { return Ok(()) };
        let mut one: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut one);
        check(libc::sched_setaffinity(0, size, &one))?;
    }
    Ok(())
}

/// The addresses of all interfaces that are up, in the kernel's order, each with its interface.
#[expect(unsafe_code, reason = "interfaces have no safe wrapper in std")]
pub(super) fn interfaces() -> io::Result<Vec<(String, IpAddr)>> {
    let mut found = Vec::new();
    let mut list: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: the call fills in a list, which is whole until it is freed below; each entry's name
    // is a C string, and its address, where there is one, has the size that its family says.
    unsafe {
        check(libc::getifaddrs(&mut list))?;
        let mut next = list;
        while let Some(entry) = next.as_ref() {
            next = entry.ifa_next;
            let name = CStr::from_ptr(entry.ifa_name).to_string_lossy().into_owned();
            let Some(address) = entry.ifa_addr.as_ref() else { continue };
            match libc::c_int::from(address.sa_family) {
                libc::AF_INET => {
                    let four = entry.ifa_addr.cast::<libc::sockaddr_in>().read_unaligned();
                    found.push((name, IpAddr::from(four.sin_addr.s_addr.to_ne_bytes())));
                }
                libc::AF_INET6 => {
                    let six = entry.ifa_addr.cast::<libc::sockaddr_in6>().read_unaligned();
                    found.push((name, IpAddr::from(six.sin6_addr.s6_addr)));
                }
                _ => {}
            }
        }
        libc::freeifaddrs(list);
    }
    Ok(found)
}

/// Lets the calling thread run after others, as `nice` does.
#[expect(unsafe_code, reason = "priorities have no safe wrapper in std")]
pub(super) fn be_nice(niceness: libc::c_int) -> io::Result<()> {
    // SAFETY: no pointers; on Linux a process id of 0 is the calling thread.
    check(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, niceness) })?;
    Ok(())
}

/// Lets the calling thread have the CPU time that nobody else wants.
#[expect(unsafe_code, reason = "scheduling policies have no safe wrapper in std")]
pub(super) fn be_last() -> io::Result<()> {
    // SAFETY: zeros are a valid value, and what the policy wants; the pointer is to a live local; a
    // process id of 0 is the calling thread.
    check(unsafe {
        let parameters: libc::sched_param = std::mem::zeroed();
        libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters)
    })?;
    Ok(())
}

/// Asks for short turns on the CPU: since Linux 6.12 who asks for shorter ones than the thread at
/// work has its turn when it wakes, and need not wait for the other's to end (some 3 ms). Older
/// kernels take no notice.
#[expect(unsafe_code, reason = "sched_setattr has no wrapper in std or libc")]
pub(super) fn ask_for_short_turns(turn: Duration) -> io::Result<()> {
    let size = size_of::<libc::sched_attr>() as libc::c_uint;
    // SAFETY: plain numbers, of which zero is one; the kernel writes and reads at most `size` bytes
    // of a live local; a process id of 0 is the calling thread.
    unsafe {
        let mut attributes: libc::sched_attr = std::mem::zeroed();
        let none: libc::c_uint = 0;
        let at = &raw mut attributes;
        check_long(libc::syscall(libc::SYS_sched_getattr, 0, at, size, none))?;
        attributes.sched_runtime = u64::try_from(turn.as_nanos()).unwrap_or(u64::MAX);
        check_long(libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, none))?;
    }
    Ok(())
}

fn check_long(result: libc::c_long) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// What the file system that holds a path has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// All of it, in bytes.
    pub bytes: u64,
    /// What an ordinary user may still write, in bytes.
    pub free: u64,
    /// Files that it can have; 0: no fixed number.
    pub inodes: u64,
    /// Files that an ordinary user may still make.
    pub inodes_free: u64,
}

/// What the file system that holds `path` has.
///
/// # Errors
/// If the kernel does not say.
#[expect(unsafe_code, reason = "statvfs has no safe wrapper in std")]
pub fn file_system_of(path: &Path) -> io::Result<FileSystem> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: `path` is terminated, `stat` a live local that the call fills.
    let stat = unsafe {
        let mut stat: libc::statvfs64 = std::mem::zeroed();
        check(libc::statvfs64(path.as_ptr(), &mut stat))?;
        stat
    };
    Ok(FileSystem {
        bytes: stat.f_blocks.saturating_mul(stat.f_frsize),
        free: stat.f_bavail.saturating_mul(stat.f_frsize),
        inodes: stat.f_files,
        inodes_free: stat.f_favail,
    })
}

/// Total and free (to an ordinary user) bytes of the file system that holds `path`.
pub(crate) fn disk_space(path: &Path) -> io::Result<(u64, u64)> {
    file_system_of(path).map(|system| (system.bytes, system.free))
}

/// What the kernel says of how its clock is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockKept {
    /// Does a time service keep it?
    pub is_synchronized: bool,
    /// How far it may be off at most, in microseconds.
    pub error_max_us: u64,
}

/// Asks the kernel how its clock is kept.
///
/// # Errors
/// If it does not say: some containers forbid the question.
#[expect(unsafe_code, reason = "adjtimex has no safe wrapper in std")]
pub fn clock_kept() -> io::Result<ClockKept> {
    // SAFETY: a timex of zeros asks and changes nothing; it is a live local that the call fills.
    let (state, timex) = unsafe {
        let mut timex: libc::timex = std::mem::zeroed();
        (check(libc::adjtimex(&raw mut timex))?, timex)
    };
    Ok(ClockKept {
        is_synchronized: state != libc::TIME_ERROR && timex.status & libc::STA_UNSYNC == 0,
        error_max_us: u64::try_from(timex.maxerror).unwrap_or(u64::MAX),
    })
}

/// Tells the kernel that reads of a file are random: it reads what it is asked for, and nothing
/// ahead of it.
#[expect(unsafe_code, reason = "fadvise has no safe wrapper in std")]
pub(crate) fn read_what_is_asked(file: &std::fs::File) {
    // SAFETY: the descriptor is open, and there are no pointers. It is advice: what has no pages
    // refuses it.
    unsafe {
        libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_RANDOM);
    }
}

/// Lets the kernel forget its pages of a file that are on the device.
#[expect(unsafe_code, reason = "fadvise has no safe wrapper in std")]
pub(crate) fn forget_pages(file: &std::fs::File) {
    // SAFETY: the descriptor is open, and there are no pointers. It is advice: what has no pages
    // refuses it.
    unsafe {
        libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED);
    }
}

/// Gives a pipe room for so many bytes, or leaves it as it is where the system allows no more: how
/// many it has room for.
#[expect(unsafe_code, reason = "the size of a pipe has no safe wrapper in std")]
pub(super) fn grow_pipe(pipe: &impl AsRawFd, bytes: usize) -> io::Result<usize> {
    let bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    // SAFETY: the descriptor is open; both calls take and give plain numbers.
    let room = unsafe {
        libc::fcntl(pipe.as_raw_fd(), libc::F_SETPIPE_SZ, bytes);
        check(libc::fcntl(pipe.as_raw_fd(), libc::F_GETPIPE_SZ))?
    };
    Ok(usize::try_from(room).unwrap_or(0))
}

/// Moves bytes of a pipe into a socket, as many as it takes now.
#[expect(unsafe_code, reason = "splice has no safe wrapper in std")]
pub(super) fn splice_now(
    from: &impl AsRawFd,
    to: &impl AsRawFd,
    bytes: usize,
) -> io::Result<usize> {
    let (from, to, none) = (from.as_raw_fd(), to.as_raw_fd(), std::ptr::null_mut());
    let flags = libc::SPLICE_F_MOVE | libc::SPLICE_F_NONBLOCK;
    // SAFETY: both descriptors are open; the places are null, as they are of what has none, so that
    // there is no pointer to memory of ours.
    let moved = unsafe { libc::splice(from, none, to, none, bytes, flags) };
    usize::try_from(moved).map_err(|_| io::Error::last_os_error())
}

/// Reads what the kernel has of a file in its pages, at most; `WouldBlock` where it would have to
/// wait for the device, of which it asks them meanwhile.
#[expect(unsafe_code, reason = "preadv2 has no safe wrapper in std")]
pub(super) fn read_in_memory(
    file: &std::fs::File,
    to: &mut [u8],
    offset: u64,
) -> io::Result<usize> {
    let part = libc::iovec { iov_base: to.as_mut_ptr().cast(), iov_len: to.len() };
    let offset = libc::off_t::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the descriptor is open; the one part is a live local, and names the bytes of a slice
    // that is ours to write.
    let read =
        unsafe { libc::preadv2(file.as_raw_fd(), &raw const part, 1, offset, libc::RWF_NOWAIT) };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}

/// What signals want that arrived.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Taken {
    /// The node's end: SIGTERM, SIGINT.
    pub ends: bool,
    /// That files are opened again: SIGHUP.
    pub hangs_up: bool,
}

/// SIGTERM, SIGINT and SIGHUP, taken off their default action and turned into a readable
/// descriptor.
pub(super) struct Signals {
    pub fd: OwnedFd,
    before: libc::sigset_t,
}

impl Signals {
    /// Blocks these signals on the calling thread (and those that it starts later).
    #[expect(unsafe_code, reason = "signalfd has no safe wrapper in std")]
    pub fn block() -> io::Result<Self> {
        // SAFETY: the sets are live locals; the descriptor returned is ours alone.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, libc::SIGTERM);
            libc::sigaddset(&mut set, libc::SIGINT);
            libc::sigaddset(&mut set, libc::SIGHUP);
            let mut before: libc::sigset_t = std::mem::zeroed();
            let error = libc::pthread_sigmask(libc::SIG_BLOCK, &set, &mut before);
            if error != 0 {
                return Err(io::Error::from_raw_os_error(error));
            }
            let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
            let fd = OwnedFd::from_raw_fd(check(libc::signalfd(-1, &set, flags))?);
            Ok(Self { fd, before })
        }
    }

    /// Takes the signals that arrived; says what they want.
    #[expect(unsafe_code, reason = "signalfd has no safe wrapper in std")]
    pub fn take(fd: libc::c_int) -> Taken {
        let mut taken = Taken::default();
        // the signal's number comes first (signalfd_siginfo.ssi_signo)
        let mut info = [0u8; size_of::<libc::signalfd_siginfo>()];
        // SAFETY: the buffer is live and of the length given.
        while unsafe { libc::read(fd, info.as_mut_ptr().cast(), info.len()) } > 0 {
            let [a, b, c, d, ..] = info;
            match u32::from_ne_bytes([a, b, c, d]) == libc::SIGHUP as u32 {
                true => taken.hangs_up = true,
                false => taken.ends = true,
            }
        }
        taken
    }
}

impl Drop for Signals {
    #[expect(unsafe_code, reason = "signalfd has no safe wrapper in std")]
    fn drop(&mut self) {
        // SAFETY: `before` was filled by `block`; restoring the mask of this thread.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut());
        }
    }
}
