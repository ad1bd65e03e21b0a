//! Keeps server timestamps from ever being given out twice, over restarts and clocks set back
//! (decision 7).
//!
//! A small file holds a time in the future that no timestamp has reached; before one does, the file
//! is moved on. A start takes the file's time as its floor. A clock that is set forward, past that
//! time, is followed only once the file has moved on: a crash, and the clock set back after it,
//! would otherwise repeat times.
//!
//! The file has two slots, written in turn and in place: a disk that is full does not keep the node
//! from moving on, and one slot that is damaged does not keep it from starting.
//!
//! ```text
//! clock_reserve = slot of even numbers at 0, slot of odd numbers at 4096; 8192 bytes
//! slot = "HLNSCLK1" | u32 version=2 | u64 number | i64 microseconds | u32 crc32 of all before;
//!        big endian; the last one has the highest number
//! ```

use std::cell::Cell;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use env::{Env, File, OpenOptions};

const MAGIC: &[u8; 8] = b"HLNSCLK1";
const VERSION: u32 = 2;
/// Bytes of a slot.
const BYTES: usize = 32;
/// Bytes between the beginnings of two slots: no disk writes both at once.
const SLOT_BYTES: usize = 4096;
const FILE_BYTES: usize = 2 * SLOT_BYTES;
/// How far the reserve reaches beyond the last timestamp.
const RESERVE: Duration = Duration::from_secs(10);
/// It is moved on when so much of it is used. After a crash timestamps run ahead of the clock by
/// the reserve at most, until the clock has caught up.
const USED_MAX: Duration = Duration::from_secs(3);
/// How often that is looked at: so long at most a clock set forward is not followed.
const PERIOD: Duration = Duration::from_millis(200);

/// Why the file is refused.
#[derive(Debug, thiserror::Error)]
pub enum ReserveError {
    /// It cannot be read or written.
    #[error("cannot read or write the clock reserve {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// It is of a newer release, or damaged.
    #[error("cannot use the clock reserve {}: {what}; without the file, timestamps start at the clock", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: &'static str,
    },
}

/// What a slot says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    /// One more than that of the entry before.
    number: u64,
    /// Microseconds since 1970.
    until: i64,
}

impl Entry {
    fn encode(self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_be_bytes());
        bytes.extend(self.number.to_be_bytes());
        bytes.extend(self.until.to_be_bytes());
        bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
        bytes
    }

    fn decode(slot: &[u8]) -> Result<Self, &'static str> {
        let bytes = slot.first_chunk::<BYTES>().ok_or("it is cut short")?;
        let (body, crc) = bytes.split_at(BYTES - 4);
        if crc32fast::hash(body).to_be_bytes() != crc {
            return Err("it fails its checksum");
        }
        let (magic, rest) = body.split_at(MAGIC.len());
        let (version, rest) = rest.split_at(4);
        let (number, until) = rest.split_at(8);
        if magic != MAGIC {
            return Err("it is not a clock reserve");
        }
        if version != VERSION.to_be_bytes() {
            return Err("another release wrote it");
        }
        let wrong = |_| "it is cut short";
        let number = number.try_into().map(u64::from_be_bytes).map_err(wrong)?;
        let until = until.try_into().map(i64::from_be_bytes).map_err(wrong)?;
        Ok(Self { number, until })
    }

    /// Where it is written.
    fn offset(self) -> usize {
        if self.number.is_multiple_of(2) { 0 } else { SLOT_BYTES }
    }
}

/// The last entry of a file, and whether the other one is damaged. Of two that are damaged, what
/// is wrong with the first.
fn last_entry(file: &[u8]) -> Result<(Entry, bool), &'static str> {
    if file.len() != FILE_BYTES {
        return Err("its length is wrong");
    }
    let (even, odd) = file.split_at(SLOT_BYTES);
    match (Entry::decode(even), Entry::decode(odd)) {
        (Ok(even), Ok(odd)) if even.number > odd.number => Ok((even, false)),
        (Ok(_), Ok(odd)) => Ok((odd, false)),
        (Ok(whole), Err(_)) | (Err(_), Ok(whole)) => Ok((whole, true)),
        (Err(what), Err(_)) => Err(what),
    }
}

/// A file whose slots both have an entry.
fn first_file(last: Entry) -> Vec<u8> {
    let mut bytes = vec![0; FILE_BYTES];
    for entry in [Entry { number: last.number - 1, ..last }, last] {
        let at = entry.offset();
        if let Some(slot) = bytes.get_mut(at..at + BYTES) {
            slot.copy_from_slice(&entry.encode());
        }
    }
    bytes
}

/// The reserve of a data directory.
pub struct ClockReserve {
    env: Env,
    file: File,
    /// The last that was begun to be written.
    number: Cell<u64>,
    until: Cell<i64>,
}

/// A reserve that was taken up again.
pub struct OpenedReserve {
    /// The reserve.
    pub reserve: ClockReserve,
    /// By how much the clock stands behind it.
    pub behind: Duration,
    /// What the operator should know.
    pub note: Option<String>,
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

impl ClockReserve {
    /// Takes the floor from the file, says by how much the clock stands behind it, and reserves
    /// more.
    ///
    /// # Errors
    /// If the file is damaged, of another release, or cannot be written.
    pub async fn open(env: &Env, directory: &Path) -> Result<OpenedReserve, ReserveError> {
        let path = directory.join("clock_reserve");
        let io = |source| ReserveError::Io { path: path.clone(), source };
        let mut note = None;
        let number = match env.exists(&path).await.map_err(io)? {
            true => {
                let bytes = env.read_file(&path, FILE_BYTES as u64).await.map_err(io)?;
                let format = |what| ReserveError::Format { path: path.clone(), what };
                let (last, is_half) = last_entry(&bytes).map_err(format)?;
                env.raise_unique_floor(last.until);
                if is_half {
                    // The damaged one may have been the last: one reserve further, unless the clock
                    // was set forward in between.
                    env.raise_unique_floor(last.until.saturating_add(micros(RESERVE)));
                    note = Some(format!(
                        "a half of {} is damaged, used the other half; check the disk of data_dir",
                        path.display()
                    ));
                }
                last.number
            }
            false => {
                let first = Entry { number: 1, until: env.unique_floor() };
                env.write_file_atomically(&path, first_file(first)).await.map_err(io)?;
                first.number
            }
        };
        let options = OpenOptions { create: false, ..OpenOptions::READ_WRITE };
        let file = File::open(env, &path, options).await.map_err(io)?;
        let (number, until) = (Cell::new(number), Cell::new(i64::MIN));
        let reserve = Self { env: env.clone(), file, number, until };
        // Within the reserve is where a quick restart stands; more means that the clock was set
        // back.
        let behind = env.clock_behind().saturating_sub(RESERVE);
        reserve.move_on().await?;
        Ok(OpenedReserve { reserve, behind, note })
    }

    fn last(&self) -> i64 {
        self.env.unique_floor().max(self.env.unix_micros())
    }

    async fn move_on(&self) -> Result<(), ReserveError> {
        let last = self.last();
        let until = last.saturating_add(micros(RESERVE));
        self.write(until).await?;
        self.until.set(until);
        self.env.raise_unique_floor(last);
        self.env.set_unique_ceiling(until);
        Ok(())
    }

    /// Writes over the entry before the last: whatever becomes of it, the last one stays.
    async fn write(&self, until: i64) -> Result<(), ReserveError> {
        let entry = Entry { number: self.number.get() + 1, until };
        self.number.set(entry.number);
        let written = async {
            self.file.write_all_at(entry.encode(), entry.offset() as u64).await.0?;
            self.file.sync_data().await
        };
        let path = || self.file.path().to_path_buf();
        written.await.map_err(|source| ReserveError::Io { path: path(), source })
    }

    /// Moves the reserve on for as long as the node runs. It ends with why it cannot any more, and
    /// then no timestamp is safe.
    pub async fn keep(&self) -> ReserveError {
        loop {
            self.env.sleep(PERIOD).await;
            let left = self.until.get().saturating_sub(self.last());
            if left < micros(RESERVE - USED_MAX)
                && let Err(error) = self.move_on().await
            {
                return error;
            }
        }
    }

    /// Gives back what is left of the reserve: no timestamp will be given out after this.
    pub async fn close(&self) -> Result<(), ReserveError> {
        self.write(self.env.unique_floor()).await
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::rc::Rc;

    use env::sim::{Fault, World, WorldOptions};

    use super::*;

    #[test]
    fn a_clock_set_forward_is_followed_once_that_is_noted() {
        let world = World::new(7, WorldOptions::default());
        let node = world.node(IpAddr::from([10, 0, 0, 1]));
        let jump = |micros| world.set_fault(Fault::ClockJump { node, micros });
        let (seen, floor) = (Rc::new(Cell::new((0, 0))), Rc::new(Cell::new(0)));
        let (theirs, started) = (Rc::clone(&seen), Rc::clone(&floor));
        world.start::<(), _, _, String>(node, 1, move |env, _| {
            let (seen, floor) = (Rc::clone(&theirs), Rc::clone(&started));
            async move {
                env.create_dir_all("/data").await.map_err(|e| e.to_string())?;
                env.sync_dir("/").await.map_err(|e| e.to_string())?;
                let opened = ClockReserve::open(&env, Path::new("/data")).await;
                let reserve = opened.map_err(|e| e.to_string())?.reserve;
                floor.set(env.unique_micros());
                let keeper =
                    env.spawn_task(env::Class::Background, async move { reserve.keep().await });
                loop {
                    seen.set((env.unique_micros(), env.unix_micros()));
                    env.sleep(Duration::from_millis(1)).await;
                    if keeper.is_finished() {
                        return Err("nobody keeps the reserve".into());
                    }
                }
            }
        });
        world.run_for(Duration::from_secs(1)).unwrap();
        // at once after the jump: whatever was given out is below the floor of the next life
        for after in [1, 40, 150, 400, 1000] {
            jump(60_000_000);
            world.run_for(Duration::from_millis(after)).unwrap();
            let (last, wall) = seen.get();
            assert!(after < 400 || last >= wall - 1_000_000, "the clock is not followed");
            world.power_cut(node);
            jump(-60_000_000);
            world.restart(node);
            floor.set(0);
            world.run_until(|| floor.get() > 0, Duration::from_secs(5)).unwrap();
            assert!(floor.get() > last, "{} was given out before, up to {last}", floor.get());
        }
    }

    #[test]
    fn a_damaged_half_raises_the_floor_by_a_reserve_and_is_said() {
        let world = World::new(7, WorldOptions::default());
        let client = world.client(IpAddr::from([10, 0, 0, 1]));
        let env = client.clone();
        let until = client.unix_micros() + 60_000_000;
        let opened = world.block_on(&client, Duration::from_secs(10), async move {
            env.create_dir_all("/data").await.unwrap();
            let mut bytes = first_file(Entry { number: 9, until });
            bytes[SLOT_BYTES] ^= 1;
            env.write_file_atomically("/data/clock_reserve", bytes).await.unwrap();
            let first = ClockReserve::open(&env, Path::new("/data")).await.unwrap();
            let floor = env.unique_micros();
            // the half that was damaged is whole again
            let second = ClockReserve::open(&env, Path::new("/data")).await.unwrap();
            (first.note, floor, second.note)
        });
        let (first, floor, second) = opened.unwrap();
        let said = "a half of /data/clock_reserve is damaged, used the other half; check the disk \
                    of data_dir";
        assert_eq!((first.as_deref(), second), (Some(said), None));
        assert!(floor > until + micros(RESERVE), "{floor}");
    }

    #[test]
    fn the_last_entry_that_is_whole_counts() {
        let entry = |number| Entry { number, until: 1_700_000_000_000_000 + number as i64 };
        let mut file = first_file(entry(1));
        assert_eq!(last_entry(&file), Ok((entry(1), false)));
        for number in 2..5 {
            let next = entry(number);
            file[next.offset()..next.offset() + BYTES].copy_from_slice(&next.encode());
            assert_eq!(last_entry(&file), Ok((next, false)));
        }
        for at in 0..BYTES {
            let mut damaged = file.clone();
            damaged[SLOT_BYTES + at] ^= 1;
            assert_eq!(last_entry(&damaged), Ok((entry(4), true)), "{at}");
            damaged = file.clone();
            damaged[at] ^= 1;
            assert_eq!(last_entry(&damaged), Ok((entry(3), true)), "{at}");
            damaged[SLOT_BYTES + at] ^= 1;
            assert!(last_entry(&damaged).is_err(), "{at}");
        }
        for len in 0..FILE_BYTES {
            assert!(last_entry(&file[..len]).is_err());
        }
        assert!(last_entry(&[file, vec![0]].concat()).is_err());
    }

    #[test]
    fn a_number_stands_where_the_one_before_the_last_stood() {
        for number in 1..9 {
            let [before, last] = [number - 1, number].map(|number| Entry { number, until: 0 });
            assert_ne!(before.offset(), last.offset());
        }
    }
}
