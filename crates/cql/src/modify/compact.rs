//! Rows of tables WITH COMPACT STORAGE. A row is its one value: it lives as long as that does, is
//! deleted with it, and is not written without it.

use rows::{CellRef, ClusteringRef, NO_TTL, UpdateBuilder};
use schema::Table;
use types::CqlType;

use crate::error::CqlError;
use crate::modify::times::Times;
use crate::modify::{Kind, Modify, Writing};

impl Modify {
    /// In a request with conditions a DELETE names a row, or static columns.
    pub(super) fn check_names_something(&self) -> Result<(), CqlError> {
        let deletes_all = self.kind == Kind::Delete && self.statics.is_empty();
        match deletes_all && self.table.is_static_compact() {
            true => Err(CqlError::invalid(
                "A whole partition of a table WITH COMPACT STORAGE cannot be deleted in a batch with conditions",
            )),
            false => Ok(()),
        }
    }
}

impl<'w, 's: 'w> Writing<'w, 's> {
    /// Writes or deletes one row.
    pub(super) fn compact_row(
        &mut self,
        key: &[u8],
        clustering: ClusteringRef<'_>,
        update: &mut UpdateBuilder,
    ) -> Result<(), CqlError> {
        let modify = self.modify;
        check_named(&modify.table, clustering)?;
        self.row.start_row(clustering);
        match (modify.kind, modify.regulars.as_slice()) {
            (Kind::Delete, []) => self.delete_value(),
            (_, []) => self.write_nothing()?,
            (_, operations) => self.cells(key, Some(clustering), operations)?,
        }
        update.add_built(&mut self.row, &mut self.scratch);
        Ok(())
    }

    fn delete_value(&mut self) {
        if let Some(value) = self.modify.table.compact_value() {
            let Times { timestamp, now_seconds, .. } = self.times;
            self.row.cell(CellRef::tombstone(value.index, None, timestamp, now_seconds));
        }
    }

    /// The value of a table that declares none.
    fn write_nothing(&mut self) -> Result<(), CqlError> {
        let Some(value) = self.modify.table.compact_value() else { return Ok(()) };
        if value.ty != CqlType::Empty {
            return Err(CqlError::invalid(format!(
                "Column {} is mandatory for this COMPACT STORAGE table",
                value.name
            )));
        }
        let Times { timestamp, ttl, expires_at, .. } = self.times;
        self.row.cell(match ttl {
            NO_TTL => CellRef::live(value.index, None, timestamp, &[]),
            ttl => CellRef::expiring(value.index, None, timestamp, ttl, expires_at, &[]),
        });
        Ok(())
    }
}

/// The one clustering column of a table that has one is not empty.
fn check_named(table: &Table, clustering: ClusteringRef<'_>) -> Result<(), CqlError> {
    let [column] = table.clustering.as_slice() else { return Ok(()) };
    if table.flags.compound || clustering.get(0).flatten().is_some_and(|value| !value.is_empty()) {
        return Ok(());
    }
    Err(CqlError::invalid(format!("Invalid empty or null value for column {}", column.name)))
}
