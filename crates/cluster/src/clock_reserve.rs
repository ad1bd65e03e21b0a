//! Keeps server timestamps from ever being given out twice, over restarts and clocks set back
//! (decision 7).
//!
//! A small file holds a time in the future that no timestamp has reached; before one does, the file
//! is moved on. A start takes the file's time as its floor. A clock that is set forward, past that
//! time, is followed only once the file has moved on: a crash, and the clock set back after it,
//! would otherwise repeat times.
//!
//! ```text
//! clock_reserve = "HLNSCLK1" | u32 version=1 | i64 microseconds | u32 crc32 of all before; big endian
//! ```

use std::cell::Cell;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use env::Env;

const MAGIC: &[u8; 8] = b"HLNSCLK1";
const VERSION: u32 = 1;
const BYTES: usize = 24;
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

fn encode(micros: i64) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_be_bytes());
    bytes.extend(micros.to_be_bytes());
    bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
    bytes
}

fn decode(bytes: &[u8]) -> Result<i64, &'static str> {
    let bytes: &[u8; BYTES] = bytes.try_into().map_err(|_| "its length is wrong")?;
    let (body, crc) = bytes.split_at(BYTES - 4);
    if crc32fast::hash(body).to_be_bytes() != crc {
        return Err("it fails its checksum");
    }
    if !body.starts_with(MAGIC) {
        return Err("it is not a clock reserve");
    }
    let field = |at: usize| body.get(at..at + 4).and_then(|b| b.try_into().ok());
    if field(8).map(u32::from_be_bytes) != Some(VERSION) {
        return Err("a newer release wrote it");
    }
    let micros = body.get(12..20).and_then(|b| b.try_into().ok()).map(i64::from_be_bytes);
    micros.ok_or("it is cut short")
}

/// The reserve of a data directory.
pub struct ClockReserve {
    env: Env,
    path: PathBuf,
    until: Cell<i64>,
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

impl ClockReserve {
    /// Takes the floor from the file, says by how much the clock stands behind it, and reserves
    /// more.
    ///
    /// # Errors
    /// If the file is damaged, of a newer release, or cannot be written.
    pub async fn open(env: &Env, directory: &Path) -> Result<(Self, Duration), ReserveError> {
        let path = directory.join("clock_reserve");
        let reserve = Self { env: env.clone(), path, until: Cell::new(i64::MIN) };
        let io = |source| ReserveError::Io { path: reserve.path.clone(), source };
        if env.exists(&reserve.path).await.map_err(io)? {
            let bytes = env.read_file(&reserve.path, 4096).await.map_err(io)?;
            let floor = decode(&bytes)
                .map_err(|what| ReserveError::Format { path: reserve.path.clone(), what })?;
            env.raise_unique_floor(floor);
        }
        // Within the reserve is where a quick restart stands; more means that the clock was set
        // back.
        let behind = env.clock_behind().saturating_sub(RESERVE);
        reserve.move_on().await?;
        Ok((reserve, behind))
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

    async fn write(&self, until: i64) -> Result<(), ReserveError> {
        let written = self.env.write_file_atomically(&self.path, encode(until)).await;
        written.map_err(|source| ReserveError::Io { path: self.path.clone(), source })
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
                let (reserve, _) = opened.map_err(|e| e.to_string())?;
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
    fn every_damage_is_refused() {
        let bytes = encode(1_700_000_000_000_000);
        assert_eq!(decode(&bytes), Ok(1_700_000_000_000_000));
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(decode(&damaged).is_err());
            assert!(decode(&bytes[..at]).is_err());
        }
    }
}
