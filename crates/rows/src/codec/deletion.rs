//! Deletion times, and local deletion times that do not fit their 32 bits (`DeletionTime`,
//! `Cell.decodeLocalDeletionTime`).

use super::stats::EncodingStats;
use super::{CodecError, Format, Problem};
use crate::time::{
    Deletion, EXPIRED_LIVENESS_TTL, INVALID_DELETION_TIME, MAX_DELETION_TIME, NO_DELETION_TIME,
    NO_TIMESTAMP,
};
use types::{ReadError, Reader, WriteBytes};

/// In `oa`: the deletion is live, and this byte is all of it.
const OA_LIVE: u8 = 0x80;
/// The largest local deletion time of `nb`; the one after it means none.
const NB_MAX_SECONDS: i64 = i32::MAX as i64 - 1;

/// Writes the partition deletion at the start of a partition in Data.db, and in index entries.
pub fn write_partition_deletion(format: Format, deletion: Deletion, out: &mut Vec<u8>) {
    if format.has_unsigned_times() {
        if deletion.is_live() {
            return out.put_u8(OA_LIVE);
        }
        out.put_i64(deletion.marked_for_delete_at);
        out.put_u32(crate::packed::pack_seconds(deletion.local_deletion_time));
    } else {
        let seconds = match deletion.local_deletion_time {
            NO_DELETION_TIME => i32::MAX,
            seconds => seconds.min(NB_MAX_SECONDS) as i32,
        };
        out.put_i32(seconds);
        out.put_i64(deletion.marked_for_delete_at);
    }
}

/// Reads what [`write_partition_deletion`] wrote.
pub fn read_partition_deletion(
    format: Format,
    reader: &mut Reader<'_>,
) -> Result<Deletion, CodecError> {
    let offset = reader.position();
    let failed = |error: ReadError| CodecError::at(offset, error);
    if format.has_unsigned_times() {
        let first = reader.peek().unwrap_or_default();
        if first & OA_LIVE != 0 {
            return match reader.u8().map_err(failed)? {
                OA_LIVE => Ok(Deletion::LIVE),
                other => Err(CodecError::at(offset, Problem::Flags(other))),
            };
        }
        let marked_for_delete_at = reader.i64().map_err(failed)?;
        let seconds = crate::packed::unpack_seconds(reader.u32().map_err(failed)?);
        return Ok(valid(Deletion::new(marked_for_delete_at, seconds)));
    }
    let seconds = reader.i32().map_err(failed)?;
    let marked_for_delete_at = reader.i64().map_err(failed)?;
    if marked_for_delete_at == NO_TIMESTAMP && seconds == i32::MAX {
        return Ok(Deletion::LIVE);
    }
    Ok(valid(Deletion::new(marked_for_delete_at, i64::from(seconds))))
}

/// A deletion of the lowest timestamp deletes nothing, whatever else it says: written where a
/// complex column without deletion stands beside one with (interop.md, 4.3).
fn valid(deletion: Deletion) -> Deletion {
    let Deletion { marked_for_delete_at, local_deletion_time } = deletion;
    if marked_for_delete_at == NO_TIMESTAMP {
        return Deletion::LIVE;
    }
    let possible = (0..=MAX_DELETION_TIME).contains(&local_deletion_time);
    let seconds = if possible { local_deletion_time } else { INVALID_DELETION_TIME };
    Deletion::new(marked_for_delete_at, seconds)
}

/// Seconds as they were before they were cut to 32 bits, where the format defines that.
fn widened(format: Format, seconds: i64) -> i64 {
    match u32::try_from(seconds.wrapping_add(1 << 32)) {
        Ok(u32::MAX) if format.has_unsigned_times() => NO_DELETION_TIME,
        Ok(wide) if format.has_unsigned_times() && seconds < 0 => i64::from(wide),
        _ => seconds,
    }
}

/// A deletion written relative to the bases of a header.
pub(crate) fn read_deletion(
    format: Format,
    stats: &EncodingStats,
    reader: &mut Reader<'_>,
) -> Result<Deletion, ReadError> {
    let marked_for_delete_at = stats.timestamp(reader)?;
    let seconds = widened(format, stats.seconds(reader)?);
    Ok(valid(Deletion::new(marked_for_delete_at, seconds)))
}

/// The local deletion time of a cell or the expiration of a liveness with a time to live: what
/// cannot have been written becomes [`INVALID_DELETION_TIME`].
pub(crate) fn checked_expiry(format: Format, seconds: i64, ttl: i32) -> i64 {
    let seconds = if seconds < 0 { widened(format, seconds) } else { seconds };
    let possible = seconds >= i64::from(ttl) || (ttl == EXPIRED_LIVENESS_TTL && seconds >= 0);
    if possible { seconds } else { INVALID_DELETION_TIME }
}
