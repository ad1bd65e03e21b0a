//! How much a read is to bring (`db.filter.DataLimits`).

use rows::codec::{read_clustering, write_clustering};
use rows::{Clustering, ClusteringBuilder, Layout};
use types::{Reader, WriteBytes};

use crate::payload::{PayloadError, WriteError};

const CQL: u8 = 0;
const CQL_PAGING: u8 = 1;
const GROUP_BY: u8 = 4;
const GROUP_BY_PAGING: u8 = 5;

const EVERYTHING: u8 = 0;
const KEY_PREFIX: u8 = 1;
const KEY_PREFIX_WITH_SELECTOR: u8 = 2;

/// Where a page before this ended, within a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paging {
    /// That partition's key.
    pub last_key: Box<[u8]>,
    /// How much of it is still wanted.
    pub remaining: i32,
}

/// How rows form groups, and the group that the page before this ended in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grouping {
    /// Rows with equal keys and as many equal clustering columns are of one group; none if all rows
    /// are.
    pub clustering_columns: Option<i32>,
    /// The partition that the page before ended in, and the last row.
    pub last: Option<(Box<[u8]>, Option<Clustering>)>,
}

/// How much a read is to bring. `i32::MAX` is no limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Rows; with groups, a limit of memory.
    pub rows: i32,
    /// Rows of a partition, or groups of it.
    pub per_partition: i32,
    /// Are only partitions asked for, DISTINCT?
    pub distinct: bool,
    /// Most groups, and how rows form them.
    pub groups: Option<(i32, Grouping)>,
    /// Where the page before this ended, if within a partition.
    pub paging: Option<Paging>,
}

impl Limits {
    /// So many rows.
    pub fn of_rows(rows: i32, per_partition: i32) -> Self {
        Self { rows, per_partition, distinct: false, groups: None, paging: None }
    }

    /// Reads them.
    pub fn read(layout: &Layout, reader: &mut Reader<'_>) -> Result<Self, PayloadError> {
        let kind = reader.u8()?;
        let mut limits = match kind {
            CQL | CQL_PAGING => {
                let mut limits = Self::of_rows(reader.uvint32()?, reader.uvint32()?);
                limits.distinct = reader.bool()?;
                limits
            }
            GROUP_BY | GROUP_BY_PAGING => {
                let groups = reader.uvint32()?;
                let per_partition = reader.uvint32()?;
                let mut limits = Self::of_rows(reader.uvint32()?, per_partition);
                limits.groups = Some((groups, Grouping::read(layout, reader)?));
                limits
            }
            kind => return Err(PayloadError::kind("limits", kind)),
        };
        if matches!(kind, CQL_PAGING | GROUP_BY_PAGING) {
            let last_key = reader.vint_bytes()?.into();
            limits.paging = Some(Paging { last_key, remaining: reader.uvint32()? });
        }
        Ok(limits)
    }

    /// Appends them.
    pub fn write(&self, layout: &Layout, out: &mut Vec<u8>) -> Result<(), WriteError> {
        out.put_u8(match (&self.groups, &self.paging) {
            (None, None) => CQL,
            (None, Some(_)) => CQL_PAGING,
            (Some(_), None) => GROUP_BY,
            (Some(_), Some(_)) => GROUP_BY_PAGING,
        });
        match &self.groups {
            None => {
                out.put_uvint32(self.rows);
                out.put_uvint32(self.per_partition);
                out.put_bool(self.distinct);
            }
            Some((groups, grouping)) => {
                out.put_uvint32(*groups);
                out.put_uvint32(self.per_partition);
                out.put_uvint32(self.rows);
                grouping.write(layout, out)?;
            }
        }
        if let Some(Paging { last_key, remaining }) = &self.paging {
            out.put_vint_bytes(last_key);
            out.put_uvint32(*remaining);
        }
        Ok(())
    }
}

impl Grouping {
    fn read(layout: &Layout, reader: &mut Reader<'_>) -> Result<Self, PayloadError> {
        let clustering_columns = match reader.u8()? {
            EVERYTHING => None,
            KEY_PREFIX => Some(reader.uvint32()?),
            KEY_PREFIX_WITH_SELECTOR => {
                return Err(PayloadError::NotServed("groups by a function"));
            }
            kind => return Err(PayloadError::kind("groups", kind)),
        };
        let mut last = None;
        if reader.bool()? {
            let key = reader.vint_bytes()?.into();
            let row = match reader.bool()? {
                true => Some(read_whole_clustering(layout, reader)?),
                false => None,
            };
            last = Some((key, row));
        }
        Ok(Self { clustering_columns, last })
    }

    fn write(&self, layout: &Layout, out: &mut Vec<u8>) -> Result<(), WriteError> {
        match self.clustering_columns {
            None => out.put_u8(EVERYTHING),
            Some(columns) => {
                out.put_u8(KEY_PREFIX);
                out.put_uvint32(columns);
            }
        }
        out.put_bool(self.last.is_some());
        if let Some((key, row)) = &self.last {
            out.put_vint_bytes(key);
            out.put_bool(row.is_some());
            if let Some(row) = row {
                write_clustering(layout, row.as_ref(), out)?;
            }
        }
        Ok(())
    }
}

/// Reads the clustering of a row.
pub(super) fn read_whole_clustering(
    layout: &Layout,
    reader: &mut Reader<'_>,
) -> Result<Clustering, PayloadError> {
    let mut values = ClusteringBuilder::default();
    read_clustering(layout, layout.clustering.len(), reader, &mut values)?;
    Ok(values.finish().to_owned())
}
