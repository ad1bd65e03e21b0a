//! Keeps server timestamps from ever being given out twice, over restarts and clocks set back (decision 7).
//!
//! A small file holds a time in the future that no timestamp has reached; before one does, the file is moved
//! on. A start takes the file's time as its floor.
//!
//! ```text
//! clock_reserve = "HLNSCLK1" | u32 version=1 | i64 microseconds | u32 crc32 of all before; big endian
//! ```

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use env::Env;

const MAGIC: &[u8; 8] = b"HLNSCLK1";
const VERSION: u32 = 1;
const BYTES: usize = 24;
/// How far the reserve reaches beyond the last timestamp.
const RESERVE: Duration = Duration::from_secs(10);
/// How often it is moved on: well before it is used up. After a crash timestamps run ahead of the clock by
/// the reserve at most, until the clock has caught up.
const PERIOD: Duration = Duration::from_secs(3);

/// Why the file is refused.
#[derive(Debug, thiserror::Error)]
pub enum ReserveError {
    /// It cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// It is of a newer release, or damaged.
    #[error("{}: {what}", path.display())]
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
    let bytes: &[u8; BYTES] = bytes.try_into().map_err(|_| "it is not of the right length")?;
    let (body, crc) = bytes.split_at(BYTES - 4);
    if crc32fast::hash(body).to_be_bytes() != crc {
        return Err("it fails its checksum");
    }
    if !body.starts_with(MAGIC) {
        return Err("it is no clock reserve");
    }
    let field = |at: usize| body.get(at..at + 4).and_then(|b| b.try_into().ok());
    if field(8).map(u32::from_be_bytes) != Some(VERSION) {
        return Err("it is of a newer release");
    }
    let micros = body.get(12..20).and_then(|b| b.try_into().ok()).map(i64::from_be_bytes);
    micros.ok_or("it is cut short")
}

/// The reserve of a data directory.
pub struct ClockReserve {
    env: Env,
    path: PathBuf,
}

impl ClockReserve {
    /// Takes the floor from the file, says by how much the clock stands behind it, and reserves more.
    ///
    /// # Errors
    /// If the file is damaged, of a newer release, or cannot be written.
    pub async fn open(env: &Env, directory: &Path) -> Result<(Self, Duration), ReserveError> {
        let reserve = Self { env: env.clone(), path: directory.join("clock_reserve") };
        let io = |source| ReserveError::Io { path: reserve.path.clone(), source };
        if env.exists(&reserve.path).await.map_err(io)? {
            let bytes = env.read_file(&reserve.path, 4096).await.map_err(io)?;
            let floor = decode(&bytes)
                .map_err(|what| ReserveError::Format { path: reserve.path.clone(), what })?;
            env.raise_unique_floor(floor);
        }
        // Within the reserve is where a quick restart stands; more means that the clock was set back.
        let behind = env.clock_behind().saturating_sub(RESERVE);
        reserve.move_on().await?;
        Ok((reserve, behind))
    }

    async fn move_on(&self) -> Result<(), ReserveError> {
        let reserve = i64::try_from(RESERVE.as_micros()).unwrap_or(i64::MAX);
        let last = self.env.unique_floor().max(self.env.unix_micros());
        self.write(last.saturating_add(reserve)).await
    }

    async fn write(&self, until: i64) -> Result<(), ReserveError> {
        let written = self.env.write_file_atomically(&self.path, encode(until)).await;
        written.map_err(|source| ReserveError::Io { path: self.path.clone(), source })
    }

    /// Moves the reserve on for as long as the node runs; gives up with an error, since then no timestamp is
    /// safe.
    pub async fn keep(&self) -> Result<(), ReserveError> {
        loop {
            self.env.sleep(PERIOD).await;
            self.move_on().await?;
        }
    }

    /// Gives back what is left of the reserve: no timestamp will be given out after this.
    pub async fn close(&self) -> Result<(), ReserveError> {
        self.write(self.env.unique_floor()).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
