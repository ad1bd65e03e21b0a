//! Operations, bound, as cells of a row.

use rows::{
    CellKind, CellRef, ClusteringRef, Deletion, Layout, NO_TTL, RowBuilder, RowRef, update_row,
};
use schema::Column;
use types::CqlType;
use types::Uuid;
use types::uuid::EPOCH_MILLIS;
use types::value::{Components, Elements, Entries};

use crate::ast::Arithmetic;
use crate::error::CqlError;
use crate::guard::Guard;
use crate::modify::operation::{Action, Operation};
use crate::modify::source::OperationValues;
use crate::modify::times::Times;
use crate::term::function::number::{Number, operate};
use crate::value::Bound;

/// 2010-01-01T00:00Z in ticks of 100 ns since 1582: the paths of prepended list cells mirror the
/// present in this moment, so that the later ones come first (`Lists.PrecisionTime`).
const MIRROR_TICKS: i64 = (1_262_304_000_000 + EPOCH_MILLIS) * 10_000;

/// Rows as they are stored, for the operations that depend on them. What is expired or deleted may
/// be among the cells.
pub trait Before {
    /// The row at a clustering of a partition; the static row for `None`.
    fn row(&self, key: &[u8], clustering: Option<ClusteringRef<'_>>) -> Option<RowRef<'_>>;
}

/// Nothing was read.
pub struct NothingRead;

impl Before for NothingRead {
    fn row(&self, _: &[u8], _: Option<ClusteringRef<'_>>) -> Option<RowRef<'_>> {
        None
    }
}

/// What cells are written with beside their values and times.
#[derive(Clone, Copy)]
pub struct CellContext<'a> {
    /// Gives paths for the cells of lists, each later than the one before: in a round of Paxos they
    /// have the time of its ballot.
    pub list_path: &'a dyn Fn() -> [u8; 16],
    /// Who watches over the request, if it is an ordinary user's.
    pub guard: Option<&'a Guard>,
}

/// Writes the cells of one row.
pub struct CellWriter<'w> {
    /// What the row is built in.
    pub row: &'w mut RowBuilder,
    /// The layout of the table.
    pub layout: &'w Layout,
    /// The columns that the row may have, by index.
    pub columns: &'w [Column],
    /// The times of all cells.
    pub times: Times,
    /// Who watches, and what gives cells of lists their paths.
    pub context: CellContext<'w>,
    /// The row as stored, if it was read.
    pub before: Option<RowRef<'w>>,
}

impl CellWriter<'_> {
    fn cell(&mut self, column: u16, path: Option<&[u8]>, value: &[u8]) -> Result<(), CqlError> {
        self.guarded(column, |guard, name| {
            guard.value_size(name, value.len())?;
            guard.value_size(name, path.map_or(0, <[u8]>::len))
        })?;
        let Times { timestamp, ttl, expires_at, .. } = self.times;
        self.row.cell(match ttl {
            NO_TTL => CellRef::live(column, path, timestamp, value),
            ttl => CellRef::expiring(column, path, timestamp, ttl, expires_at, value),
        });
        Ok(())
    }

    /// Has the guard check something of a column, if there is one.
    fn guarded(
        &self,
        column: u16,
        check: impl FnOnce(&Guard, &str) -> Result<(), CqlError>,
    ) -> Result<(), CqlError> {
        let name = || self.columns.get(usize::from(column)).map_or("", |column| &column.name);
        self.context.guard.map_or(Ok(()), |guard| check(guard, name()))
    }

    fn tombstone(&mut self, column: u16, path: Option<&[u8]>) {
        let Times { timestamp, now_seconds, .. } = self.times;
        self.row.cell(CellRef::tombstone(column, path, timestamp, now_seconds));
    }

    fn complex_deletion(&mut self, column: u16, timestamp: i64) {
        self.row.complex_deletion(column, Deletion::new(timestamp, self.times.now_seconds));
    }

    /// Does an operation, with the values of its terms.
    pub fn apply(
        &mut self,
        operation: &Operation,
        (first, second): OperationValues<'_>,
    ) -> Result<(), CqlError> {
        let column = operation.column;
        match &operation.action {
            Action::Set(_) => self.set(operation, first),
            Action::Append(_) => match first {
                Bound::Bytes(value) => self.append(column, &value),
                Bound::Null | Bound::Unset => Ok(()),
            },
            Action::Prepend(_) => match first {
                Bound::Bytes(value) => self.prepend(column, &value),
                Bound::Null | Bound::Unset => Ok(()),
            },
            Action::Add(_) => match first {
                Bound::Bytes(value) => self.add(operation, &value),
                Bound::Null | Bound::Unset => Ok(()),
            },
            Action::Remove(_) => match first {
                Bound::Bytes(keys) => {
                    for key in items(&keys)? {
                        self.tombstone(column, Some(key?));
                    }
                    Ok(())
                }
                Bound::Null | Bound::Unset => Ok(()),
            },
            Action::Put(..) => self.put(column, first, second),
            Action::SetField(field, _) => {
                let path = field.to_be_bytes();
                match first {
                    Bound::Bytes(value) => self.cell(column, Some(&path), &value)?,
                    Bound::Null => self.tombstone(column, Some(&path)),
                    Bound::Unset => {}
                }
                Ok(())
            }
            Action::Increment(_) => self.count(column, first, false),
            Action::Decrement(_) => self.count(column, first, true),
            Action::AddToValue(_) => self.add_to_value(operation, first),
            Action::Delete if operation.ty.is_multicell() => {
                self.complex_deletion(column, self.times.timestamp);
                Ok(())
            }
            Action::Delete => {
                self.tombstone(column, None);
                Ok(())
            }
            Action::DeleteElement(_) => self.delete_element(operation, first),
            Action::DeleteField(field) => {
                self.tombstone(column, Some(&field.to_be_bytes()));
                Ok(())
            }
            Action::SetIndex(..) => self.set_index(column, first, second),
            Action::RemoveValues(_) => self.remove_values(column, first),
            Action::DeleteIndex(_) => self.delete_index(column, first),
        }
    }

    /// Writes what is to be added to a counter; the replica that applies it makes a shard of it
    /// (`Constants.Adder`, `Constants.Substracter`).
    fn count(&mut self, column: u16, value: Bound<'_>, is_decrement: bool) -> Result<(), CqlError> {
        let value = match value {
            Bound::Bytes(value) => value,
            Bound::Null => {
                return Err(CqlError::invalid("Invalid null value for counter increment"));
            }
            Bound::Unset => return Ok(()),
        };
        let value = CqlType::BigInt.as_i64(&value).unwrap_or_default();
        let count = if is_decrement { value.checked_neg() } else { Some(value) };
        let count = count.ok_or_else(|| {
            CqlError::invalid(format!(
                "The negation of {value} overflows supported counter precision (signed 8 bytes integer)"
            ))
        })?;
        self.cell(column, None, &rows::counter::update(count))
    }

    fn set(&mut self, operation: &Operation, value: Bound<'_>) -> Result<(), CqlError> {
        let column = operation.column;
        let value = match value {
            Bound::Unset => return Ok(()),
            Bound::Null => None,
            Bound::Bytes(value) => Some(value),
        };
        if !operation.ty.is_multicell() {
            match value {
                Some(value) => self.set_whole(operation, &value)?,
                None => self.tombstone(column, None),
            }
            return Ok(());
        }
        // What was there goes, what is written now stays: the deletion is a tick older.
        self.complex_deletion(column, self.times.timestamp.wrapping_sub(1));
        let Some(value) = value else { return Ok(()) };
        match &operation.ty {
            CqlType::List { .. } => self.append(column, &value),
            CqlType::Udt { .. } => self.set_fields(column, &value),
            _ => self.add(operation, &value),
        }
    }

    fn set_fields(&mut self, column: u16, value: &[u8]) -> Result<(), CqlError> {
        for (field, component) in (0_u16..).zip(Components::of(value)) {
            if let Some(component) = component.map_err(malformed)? {
                self.cell(column, Some(&field.to_be_bytes()), component)?;
            }
        }
        Ok(())
    }

    /// Writes a value into its one cell.
    fn set_whole(&mut self, operation: &Operation, value: &[u8]) -> Result<(), CqlError> {
        let column = operation.column;
        let is_collection = matches!(
            operation.ty,
            CqlType::List { .. } | CqlType::Set { .. } | CqlType::Map { .. }
        );
        if is_collection {
            self.guarded(column, |guard, name| guard.collection_items(name, count(value)))?;
        }
        self.cell(column, None, value)?;
        match is_collection {
            true => self.guarded(column, |guard, name| {
                guard.collection_size(name, value.len() + CELL_BYTES)
            }),
            false => Ok(()),
        }
    }

    fn append(&mut self, column: u16, list: &[u8]) -> Result<(), CqlError> {
        self.guarded(column, |guard, name| guard.collection_items(name, count(list)))?;
        let mut size = 0;
        for item in items(list)? {
            let (path, item) = ((self.context.list_path)(), item?);
            self.cell(column, Some(&path), item)?;
            size += CELL_BYTES + path.len() + item.len();
        }
        self.guarded(column, |guard, name| guard.collection_size(name, size))
    }

    fn prepend(&mut self, column: u16, list: &[u8]) -> Result<(), CqlError> {
        let values = items(list)?.collect::<Result<Vec<_>, _>>()?;
        for value in values.into_iter().rev() {
            let now = Uuid::from_bytes((self.context.list_path)());
            let ticks = now.ticks().unwrap_or(MIRROR_TICKS);
            let mirrored = MIRROR_TICKS.saturating_mul(2).saturating_sub(ticks);
            // those of one ballot differ in this half alone, so it is mirrored too
            let path = Uuid::from_ticks(mirrored, !now.clock_seq_and_node()).to_bytes();
            self.cell(column, Some(&path), value)?;
        }
        Ok(())
    }

    /// Adds the elements of a set or the entries of a map.
    fn add(&mut self, operation: &Operation, value: &[u8]) -> Result<(), CqlError> {
        let column = operation.column;
        self.guarded(column, |guard, name| guard.collection_items(name, count(value)))?;
        let mut size = 0;
        if let CqlType::Map { .. } = operation.ty {
            for entry in Entries::of(value).map_err(malformed)? {
                let (key, value) = entry.map_err(malformed)?;
                self.cell(column, Some(key), value)?;
                size += CELL_BYTES + key.len() + value.len();
            }
        } else {
            for element in items(value)? {
                let element = element?;
                self.cell(column, Some(element), &[])?;
                size += CELL_BYTES + element.len();
            }
        }
        self.guarded(column, |guard, name| guard.collection_size(name, size))
    }

    fn put(&mut self, column: u16, key: Bound<'_>, value: Bound<'_>) -> Result<(), CqlError> {
        let key = match key {
            Bound::Bytes(key) => key,
            Bound::Null => return Err(CqlError::invalid("Invalid null map key")),
            Bound::Unset => return Err(CqlError::invalid("Invalid unset map key")),
        };
        match value {
            Bound::Bytes(value) => self.cell(column, Some(&key), &value)?,
            Bound::Null => self.tombstone(column, Some(&key)),
            Bound::Unset => {}
        }
        Ok(())
    }

    fn delete_element(
        &mut self,
        operation: &Operation,
        element: Bound<'_>,
    ) -> Result<(), CqlError> {
        let what = match operation.ty {
            CqlType::Set { .. } => "set element",
            _ => "map key",
        };
        match element {
            Bound::Bytes(path) => self.tombstone(operation.column, Some(&path)),
            Bound::Null => return Err(CqlError::invalid(format!("Invalid null {what}"))),
            Bound::Unset => return Err(CqlError::invalid(format!("Invalid unset {what}"))),
        }
        Ok(())
    }

    /// `v = v + x` in a conditional statement: a sum of numbers or a longer text. Where there is no
    /// value, none comes to be (`Constants.Adder`).
    fn add_to_value(&mut self, operation: &Operation, added: Bound<'_>) -> Result<(), CqlError> {
        let added = match added {
            Bound::Bytes(value) => Some(value),
            Bound::Null | Bound::Unset => None,
        };
        let stored = self.stored_cells(operation.column).into_iter().next();
        let Some((_, value)) = stored else { return Ok(()) };
        let nothing = || CqlError::invalid("Invalid null value for an addition");
        let added = added.ok_or_else(nothing)?;
        let sum = match &operation.ty {
            CqlType::Text | CqlType::Ascii => [&value[..], &added[..]].concat(),
            ty => {
                let (a, b) = (Number::of(ty, &value), Number::of(ty, &added));
                let (Some(a), Some(b)) = (a, b) else { return Err(nothing()) };
                operate(Arithmetic::Add, ty, &a, &b).map_err(CqlError::invalid)?
            }
        };
        self.cell(operation.column, None, &sum)
    }

    /// The cells of a column as they are before the next operation: stored ones and those written
    /// by the operations before, the living ones only; path and value of each.
    fn stored_cells(&self, column: u16) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut pending = self.row.clone();
        let pending = pending.finish_row(self.layout);
        let mut merged = RowBuilder::new();
        let row = match self.before {
            None => Some(pending),
            Some(before) => update_row(self.layout, before, pending, &mut merged),
        };
        let now = self.times.now_seconds;
        let cells = row.into_iter().flat_map(|row| row.cells());
        let cells = cells.filter(|cell| {
            let is_alive = match cell.kind {
                CellKind::Live => true,
                CellKind::Expiring => cell.local_deletion_time > now,
                CellKind::Tombstone | CellKind::ComplexDeletion => false,
            };
            cell.column == column && is_alive
        });
        cells.map(|cell| (cell.path.unwrap_or_default().to_vec(), cell.value.to_vec())).collect()
    }

    /// The path of the list's cell at an index.
    fn path_at(&self, column: u16, index: &[u8], verb: &str) -> Result<Vec<u8>, CqlError> {
        let cells = self.stored_cells(column);
        let index = CqlType::Int.as_i64(index).unwrap_or(-1);
        if cells.is_empty() {
            return Err(CqlError::invalid(format!("Attempted to {verb} a list which is null")));
        }
        let size = cells.len();
        let found = usize::try_from(index).ok().and_then(|at| cells.into_iter().nth(at));
        found.map(|(path, _)| path).ok_or_else(|| {
            CqlError::invalid(format!("List index {index} out of bound, list has size {size}"))
        })
    }

    fn set_index(
        &mut self,
        column: u16,
        index: Bound<'_>,
        value: Bound<'_>,
    ) -> Result<(), CqlError> {
        let index = match index {
            Bound::Bytes(index) => index,
            Bound::Null => return Err(CqlError::invalid("Invalid null value for list index")),
            Bound::Unset => return Err(CqlError::invalid("Invalid unset value for list index")),
        };
        let path = self.path_at(column, &index, "set an element on")?;
        match value {
            Bound::Bytes(value) => self.cell(column, Some(&path), &value)?,
            Bound::Null => self.tombstone(column, Some(&path)),
            Bound::Unset => {}
        }
        Ok(())
    }

    fn remove_values(&mut self, column: u16, values: Bound<'_>) -> Result<(), CqlError> {
        let Bound::Bytes(values) = values else { return Ok(()) };
        // no cell of the list is null
        let values = Elements::of_list(&values).map_err(malformed)?;
        let values = values.filter_map(Result::transpose).collect::<Result<Vec<_>, _>>();
        let values = values.map_err(malformed)?;
        for (path, value) in self.stored_cells(column) {
            if values.contains(&value.as_slice()) {
                self.tombstone(column, Some(&path));
            }
        }
        Ok(())
    }

    fn delete_index(&mut self, column: u16, index: Bound<'_>) -> Result<(), CqlError> {
        let index = match index {
            Bound::Bytes(index) => index,
            Bound::Null => return Err(CqlError::invalid("Invalid null value for list index")),
            Bound::Unset => return Ok(()),
        };
        let path = self.path_at(column, &index, "delete an element from")?;
        self.tombstone(column, Some(&path));
        Ok(())
    }
}

/// What Cassandra counts a cell for beside its path and value: timestamp, time to live, deletion
/// time.
const CELL_BYTES: usize = 20;

/// Elements or entries of a collection.
fn count(collection: &[u8]) -> usize {
    let count = collection.first_chunk().map_or(0, |count| i32::from_be_bytes(*count));
    usize::try_from(count).unwrap_or_default()
}

fn malformed(error: types::ReadError) -> CqlError {
    CqlError::invalid(error.to_string())
}

/// The elements of a list or set, none of them null.
fn items(value: &[u8]) -> Result<impl Iterator<Item = Result<&[u8], CqlError>>, CqlError> {
    let elements = Elements::of_list(value).map_err(malformed)?;
    Ok(elements.map(|item| {
        let item = item.map_err(malformed)?;
        item.ok_or_else(|| CqlError::invalid("null is not supported inside collections"))
    }))
}
