//! The bases that timestamps, local deletion times and times to live are written relative to
//! (`EncodingStats`). They decide how many bytes things take, never what they mean.

use crate::row::RowRef;
use crate::time::{Deletion, NO_DELETION_TIME, NO_TIMESTAMP, NO_TTL};
use crate::{CellKind, PartitionUpdate};
use types::vint::uvint_size;
use types::{ReadError, Reader, WriteBytes};

/// 2015-09-22 00:00 UTC in microseconds.
const TIMESTAMP_EPOCH: i64 = 1_442_880_000_000_000;
/// The same in seconds.
const DELETION_TIME_EPOCH: i64 = 1_442_880_000;
const TTL_EPOCH: i32 = 0;

/// Minima over what is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodingStats {
    /// Of all timestamps, in microseconds.
    pub min_timestamp: i64,
    /// Of all local deletion times and expirations, in seconds.
    pub min_local_deletion_time: i64,
    /// Of all times to live, in seconds.
    pub min_ttl: i32,
}

impl Default for EncodingStats {
    fn default() -> Self {
        Self::NONE
    }
}

impl EncodingStats {
    /// Where there is nothing to take minima of.
    pub const NONE: Self = Self {
        min_timestamp: TIMESTAMP_EPOCH,
        min_local_deletion_time: DELETION_TIME_EPOCH,
        min_ttl: TTL_EPOCH,
    };

    /// Of minima that are told apart from none by [`NO_TIMESTAMP`], [`NO_DELETION_TIME`] and
    /// [`NO_TTL`].
    pub fn of_minima(timestamp: i64, local_deletion_time: i64, ttl: i32) -> Self {
        let none = Self::NONE;
        let or = |value, missing, none| if value == missing { none } else { value };
        Self {
            min_timestamp: or(timestamp, NO_TIMESTAMP, none.min_timestamp),
            min_local_deletion_time: or(
                local_deletion_time,
                NO_DELETION_TIME,
                none.min_local_deletion_time,
            ),
            min_ttl: if ttl == NO_TTL { none.min_ttl } else { ttl },
        }
    }

    /// The minima of both; where one has none, those of the other.
    pub fn merge(self, other: Self) -> Self {
        fn least<T: Ord>(a: T, b: T, none: T) -> T {
            match (a == none, b == none) {
                (true, _) => b,
                (_, true) => a,
                _ => a.min(b),
            }
        }
        let none = Self::NONE;
        Self {
            min_timestamp: least(self.min_timestamp, other.min_timestamp, none.min_timestamp),
            min_local_deletion_time: least(
                self.min_local_deletion_time,
                other.min_local_deletion_time,
                none.min_local_deletion_time,
            ),
            min_ttl: least(self.min_ttl, other.min_ttl, none.min_ttl),
        }
    }

    /// Of an update.
    pub fn of(update: &PartitionUpdate) -> Self {
        let mut collector = StatsCollector::default();
        collector.deletion(update.deletion);
        for range in &update.ranges {
            collector.deletion(range.deletion);
        }
        for row in update.static_row().into_iter().chain(update.rows.iter()) {
            collector.row(row);
        }
        collector.finish()
    }

    /// Reads three deltas.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, ReadError> {
        Ok(Self {
            min_timestamp: reader.uvint()?.cast_signed().wrapping_add(TIMESTAMP_EPOCH),
            min_local_deletion_time: i64::from(reader.uvint32()?) + DELETION_TIME_EPOCH,
            min_ttl: reader.uvint32()?.wrapping_add(TTL_EPOCH),
        })
    }

    /// Appends three deltas.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.put_uvint(self.min_timestamp.wrapping_sub(TIMESTAMP_EPOCH).cast_unsigned());
        out.put_uvint32(self.min_local_deletion_time.wrapping_sub(DELETION_TIME_EPOCH) as i32);
        out.put_uvint32(self.min_ttl.wrapping_sub(TTL_EPOCH));
    }

    pub(crate) fn put_timestamp(&self, timestamp: i64, out: &mut Vec<u8>) {
        out.put_uvint(timestamp.wrapping_sub(self.min_timestamp).cast_unsigned());
    }

    /// Bytes that [`Self::put_timestamp`] writes.
    pub(crate) fn timestamp_size(&self, timestamp: i64) -> usize {
        uvint_size(timestamp.wrapping_sub(self.min_timestamp).cast_unsigned())
    }

    /// The difference is cut to 32 bits and sign-extended, as a Java `int`.
    pub(crate) fn put_seconds(&self, seconds: i64, out: &mut Vec<u8>) {
        out.put_uvint32(seconds.wrapping_sub(self.min_local_deletion_time) as i32);
    }

    pub(crate) fn put_ttl(&self, ttl: i32, out: &mut Vec<u8>) {
        out.put_uvint32(ttl.wrapping_sub(self.min_ttl));
    }

    pub(crate) fn put_deletion(&self, deletion: Deletion, out: &mut Vec<u8>) {
        self.put_timestamp(deletion.marked_for_delete_at, out);
        self.put_seconds(deletion.local_deletion_time, out);
    }

    pub(crate) fn timestamp(&self, reader: &mut Reader<'_>) -> Result<i64, ReadError> {
        Ok(reader.uvint()?.cast_signed().wrapping_add(self.min_timestamp))
    }

    /// May come out negative: see [`super::deletion`].
    pub(crate) fn seconds(&self, reader: &mut Reader<'_>) -> Result<i64, ReadError> {
        Ok(i64::from(reader.uvint32()?).wrapping_add(self.min_local_deletion_time))
    }

    pub(crate) fn ttl(&self, reader: &mut Reader<'_>) -> Result<i32, ReadError> {
        Ok(reader.uvint32()?.wrapping_add(self.min_ttl))
    }
}

/// Collects [`EncodingStats`].
#[derive(Clone, Copy, Debug)]
pub struct StatsCollector {
    timestamp: i64,
    seconds: i64,
    ttl: i32,
    any: bool,
}

impl Default for StatsCollector {
    fn default() -> Self {
        Self { timestamp: i64::MAX, seconds: NO_DELETION_TIME, ttl: i32::MAX, any: false }
    }
}

impl StatsCollector {
    /// Takes a deletion into account; a live one does not count.
    pub fn deletion(&mut self, deletion: Deletion) {
        if !deletion.is_live() {
            self.timestamp(deletion.marked_for_delete_at);
            self.seconds = self.seconds.min(deletion.local_deletion_time);
        }
    }

    /// Takes a row into account.
    pub fn row(&mut self, row: RowRef<'_>) {
        self.deletion(row.deletion());
        if let Some(liveness) = row.liveness() {
            self.timestamp(liveness.timestamp);
            self.expiry(liveness.ttl, liveness.expires_at);
        }
        if !row.is_mortal() {
            return row.own_timestamps().for_each(|timestamp| self.timestamp(timestamp));
        }
        for cell in row.cells() {
            self.timestamp(cell.timestamp);
            match cell.kind {
                CellKind::Live => {}
                CellKind::Expiring => self.expiry(cell.ttl, cell.local_deletion_time),
                CellKind::Tombstone | CellKind::ComplexDeletion => {
                    self.seconds = self.seconds.min(cell.local_deletion_time);
                }
            }
        }
    }

    fn timestamp(&mut self, timestamp: i64) {
        self.any = true;
        self.timestamp = self.timestamp.min(timestamp);
    }

    fn expiry(&mut self, ttl: i32, expires_at: i64) {
        if ttl != NO_TTL {
            self.ttl = self.ttl.min(ttl);
            self.seconds = self.seconds.min(expires_at);
        }
    }

    /// The minima, the epochs where there were none.
    pub fn finish(&self) -> EncodingStats {
        let none = EncodingStats::NONE;
        let timestamp = Some(self.timestamp).filter(|ts| self.any && *ts != NO_TIMESTAMP);
        let seconds = Some(self.seconds).filter(|seconds| *seconds != NO_DELETION_TIME);
        EncodingStats {
            min_timestamp: timestamp.unwrap_or(none.min_timestamp),
            min_local_deletion_time: seconds.unwrap_or(none.min_local_deletion_time),
            min_ttl: if self.ttl == i32::MAX { none.min_ttl } else { self.ttl },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_one_has_no_minimum_that_of_the_other_holds() {
        let live = EncodingStats { min_timestamp: 1_700_000_000_000_000, ..EncodingStats::NONE };
        let expiring = EncodingStats {
            min_timestamp: 1_800_000_000_000_000,
            min_local_deletion_time: 1_700_000_060,
            min_ttl: 60,
        };
        let merged = EncodingStats { min_timestamp: live.min_timestamp, ..expiring };
        assert_eq!(live.merge(expiring), merged);
        assert_eq!(expiring.merge(live), merged);
        assert_eq!(EncodingStats::NONE.merge(live), live);
        let later = EncodingStats { min_ttl: 70, ..expiring };
        assert_eq!(later.merge(expiring), expiring);
    }

    #[test]
    fn no_minimum_is_the_epoch() {
        let none = EncodingStats::of_minima(NO_TIMESTAMP, NO_DELETION_TIME, NO_TTL);
        assert_eq!(none, EncodingStats::NONE);
        assert_eq!(EncodingStats::of_minima(5, 6, 7).min_local_deletion_time, 6);
    }
}
