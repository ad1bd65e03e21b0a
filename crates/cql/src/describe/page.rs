//! Pages of DESCRIBE. Where to go on is kept in the partition key of the paging state:
//!
//! | bytes | what |
//! |---|---|
//! | 2 | version, 1 |
//! | 2 + n | `release_version` of the node, its length first |
//! | 16 | version of the schema |
//! | 8 | rows that were shown |

use std::sync::Arc;

use super::{DescribeContext, Described};
use crate::error::CqlError;
use crate::metadata::ResultColumn;

const VERSION: u16 = 1;

fn fail<T>(message: impl Into<String>) -> Result<T, CqlError> {
    Err(CqlError::Invalid(message.into()))
}

fn take<'a, const N: usize>(bytes: &mut &'a [u8]) -> Result<&'a [u8; N], CqlError> {
    match bytes.split_first_chunk() {
        Some((head, rest)) => {
            *bytes = rest;
            Ok(head)
        }
        None => fail("Invalid paging state."),
    }
}

/// Rows that were shown on earlier pages.
pub(super) fn offset(context: &DescribeContext<'_>) -> Result<usize, CqlError> {
    let Some(mut bytes) = context.page else { return Ok(0) };
    if u16::from_be_bytes(*take(&mut bytes)?) != VERSION {
        return fail("Incompatible paging state");
    }
    let length = usize::from(u16::from_be_bytes(*take(&mut bytes)?));
    let Some((release, mut bytes)) = bytes.split_at_checked(length) else {
        return fail("Invalid paging state.");
    };
    let ours = context.release_version;
    if release != ours.as_bytes() {
        let theirs = String::from_utf8_lossy(release);
        return fail(format!(
            "The server version of the paging state {theirs} is different from the one of the server {ours}"
        ));
    }
    if *take::<16>(&mut bytes)? != context.schema.version() {
        return fail(
            "The schema has changed since the previous page of the DESCRIBE statement result. Please retry \
             the DESCRIBE statement.",
        );
    }
    let shown = i64::from_be_bytes(*take(&mut bytes)?);
    Ok(usize::try_from(shown).unwrap_or(0))
}

fn next(context: &DescribeContext<'_>, shown: usize) -> Vec<u8> {
    let release = context.release_version.as_bytes();
    let mut out = VERSION.to_be_bytes().to_vec();
    out.extend(u16::try_from(release.len()).unwrap_or(0).to_be_bytes());
    out.extend(release);
    out.extend(context.schema.version());
    out.extend(i64::try_from(shown).unwrap_or(i64::MAX).to_be_bytes());
    out
}

/// One page of the rows. A full page is followed by another, though it may be empty.
pub(super) fn described(
    context: &DescribeContext<'_>,
    columns: Arc<[ResultColumn]>,
    offset: usize,
    rows: impl Iterator<Item = Vec<Vec<u8>>>,
) -> Described {
    let size =
        context.page_size.and_then(|size| usize::try_from(size).ok()).filter(|size| *size > 0);
    let rows: Vec<_> = rows.skip(offset).take(size.unwrap_or(usize::MAX)).collect();
    let full = size.is_some_and(|size| rows.len() == size);
    let next_page = full.then(|| next(context, offset.saturating_add(rows.len())));
    Described { columns, rows, next_page }
}
