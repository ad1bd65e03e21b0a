//! Which columns a read is about (`db.filter.ColumnFilter`): those that are fetched, so that it is
//! known which rows live, and among them those that were asked for, of which some may be asked for
//! in part.

use rows::codec::{ColumnSet, EncodingStats, Format, Header};
use schema::Table;
use types::{Reader, WriteBytes};

use crate::payload::{PayloadError, WriteError};

const FETCH_ALL_REGULARS: u8 = 0x01;
const HAS_QUERIED: u8 = 0x02;
const HAS_SUBSELECTIONS: u8 = 0x04;
const FETCH_ALL_STATICS: u8 = 0x08;

/// Bytes of a part of a column at least: length of its name, kind, length of a path.
const LEAST_SUBSELECTION: usize = 4;

/// Static and regular columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// Static ones.
    pub statics: ColumnSet,
    /// Regular ones.
    pub regulars: ColumnSet,
}

impl Columns {
    /// All of a table.
    pub fn all(table: &Table) -> Self {
        let set = |is_static| ColumnSet::all(&table.layout, is_static);
        Self { statics: set(true), regulars: set(false) }
    }

    fn read(table: &Table, reader: &mut Reader<'_>) -> Result<Self, PayloadError> {
        let statics = ColumnSet::read_names(&table.layout, true, reader)?;
        Ok(Self { statics, regulars: ColumnSet::read_names(&table.layout, false, reader)? })
    }

    fn write(&self, table: &Table, out: &mut Vec<u8>) {
        self.statics.write_names(&table.layout, true, out);
        self.regulars.write_names(&table.layout, false, out);
    }
}

/// A part of a column of several cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subselection {
    /// The cells between two paths.
    Slice {
        /// Its column.
        column: Box<str>,
        /// First path.
        from: Box<[u8]>,
        /// Last path.
        to: Box<[u8]>,
    },
    /// One cell.
    Element {
        /// Its column.
        column: Box<str>,
        /// Its path.
        path: Box<[u8]>,
    },
}

impl Subselection {
    const SLICE: u8 = 0;
    const ELEMENT: u8 = 1;

    /// Its column.
    pub fn column(&self) -> &str {
        match self {
            Self::Slice { column, .. } | Self::Element { column, .. } => column,
        }
    }

    fn read(table: &Table, reader: &mut Reader<'_>) -> Result<Self, PayloadError> {
        let column = column_name(table, reader)?;
        let kind = reader.u8()?;
        let mut path = || reader.vint_bytes().map(Box::from);
        match kind {
            Self::SLICE => Ok(Self::Slice { column, from: path()?, to: path()? }),
            Self::ELEMENT => Ok(Self::Element { column, path: path()? }),
            kind => Err(PayloadError::kind("part of a column", kind)),
        }
    }

    fn write(&self, out: &mut Vec<u8>) -> Result<(), WriteError> {
        out.put_short_bytes(self.column().as_bytes())?;
        match self {
            Self::Slice { from, to, .. } => {
                out.put_u8(Self::SLICE);
                out.put_vint_bytes(from);
                out.put_vint_bytes(to);
            }
            Self::Element { path, .. } => {
                out.put_u8(Self::ELEMENT);
                out.put_vint_bytes(path);
            }
        }
        Ok(())
    }
}

/// The name of a column behind its length; one that the table had once counts, too.
fn column_name(table: &Table, reader: &mut Reader<'_>) -> Result<Box<str>, PayloadError> {
    let bytes = reader.short_bytes()?;
    let known = |name: &&str| table.column(name).is_some() || table.dropped.contains_key(*name);
    let name = std::str::from_utf8(bytes).ok().filter(known);
    let unknown = || PayloadError::UnknownColumn(String::from_utf8_lossy(bytes).into_owned());
    name.map(Box::from).ok_or_else(unknown)
}

/// Which columns a read is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnFilter {
    /// The columns that are fetched, if those are not just the ones that were asked for: all
    /// regular ones.
    all: Option<Columns>,
    /// The columns that were asked for; none if all that are fetched were.
    queried: Option<Columns>,
    /// Are all static columns fetched?
    all_statics: bool,
    /// Parts of columns that were asked for.
    pub subselections: Vec<Subselection>,
}

impl ColumnFilter {
    /// All columns: `SELECT *`.
    pub fn all(table: &Table) -> Self {
        let all = Some(Columns::all(table));
        Self { all, queried: None, all_statics: true, subselections: Vec::new() }
    }

    /// Some columns, of which rows' being depends on all regular ones: `fetched` are those, and
    /// static ones: all, if `all_statics` says so, else those asked for.
    pub fn some(fetched: Columns, all_statics: bool, queried: Columns) -> Self {
        let (all, queried) = (Some(fetched), Some(queried));
        Self { all, queried, all_statics, subselections: Vec::new() }
    }

    /// Nothing but those columns.
    pub fn only(queried: Columns) -> Self {
        let queried = Some(queried);
        Self { all: None, queried, all_statics: false, subselections: Vec::new() }
    }

    /// The columns that are fetched: those that digests name and answers count.
    pub fn fetched(&self) -> &Columns {
        const NONE: &Columns = &Columns { statics: ColumnSet::NONE, regulars: ColumnSet::NONE };
        self.all.as_ref().or(self.queried.as_ref()).unwrap_or(NONE)
    }

    /// The columns that were asked for. Cells of others are sent without their values, or not at
    /// all.
    pub fn queried(&self) -> &Columns {
        self.queried.as_ref().unwrap_or(self.fetched())
    }

    /// Are all columns of a kind fetched, whatever was asked for?
    pub fn fetches_all(&self, is_static: bool) -> bool {
        self.all.is_some() && (!is_static || self.all_statics)
    }

    /// The header of which the columns of each partition of an answer are a subset.
    pub fn header(&self) -> Header {
        let Columns { statics, regulars } = self.fetched().clone();
        Header::of_sets(Format::Messaging12, EncodingStats::NONE, statics, regulars)
    }

    /// Reads it.
    pub fn read(table: &Table, reader: &mut Reader<'_>) -> Result<Self, PayloadError> {
        let flags = reader.u8()?;
        let mut columns = |flag| match flags & flag {
            0 => Ok(None),
            _ => Columns::read(table, reader).map(Some),
        };
        let all = columns(FETCH_ALL_REGULARS)?;
        let queried = columns(HAS_QUERIED)?;
        if all.is_none() && queried.is_none() {
            return Err(PayloadError::kind("column filter", flags));
        }
        let mut subselections = Vec::new();
        if flags & HAS_SUBSELECTIONS != 0 {
            for _ in 0..reader.count(LEAST_SUBSELECTION)? {
                subselections.push(Subselection::read(table, reader)?);
            }
        }
        Ok(Self { all, queried, all_statics: flags & FETCH_ALL_STATICS != 0, subselections })
    }

    /// Appends it.
    pub fn write(&self, table: &Table, out: &mut Vec<u8>) -> Result<(), WriteError> {
        let mut flags = 0;
        for (is_set, flag) in [
            (self.all.is_some(), FETCH_ALL_REGULARS),
            (self.queried.is_some(), HAS_QUERIED),
            (!self.subselections.is_empty(), HAS_SUBSELECTIONS),
            (self.all_statics, FETCH_ALL_STATICS),
        ] {
            if is_set {
                flags |= flag;
            }
        }
        out.put_u8(flags);
        for columns in [&self.all, &self.queried].into_iter().flatten() {
            columns.write(table, out);
        }
        if !self.subselections.is_empty() {
            out.put_uvint(self.subselections.len() as u64);
            self.subselections.iter().try_for_each(|part| part.write(out))?;
        }
        Ok(())
    }
}
