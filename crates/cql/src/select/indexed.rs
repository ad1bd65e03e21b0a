//! Which restrictions the indexes of a table serve (`Index.supportsExpression` of the kinds of
//! `CassandraIndex`).
//!
//! No index is kept. What Cassandra's would find, a scan of the table finds, in the same order: an
//! index there gives the rows of a value by token, then by clustering. So an index decides here
//! only which reads need no ALLOW FILTERING.

use schema::{Column, Index, IndexPart, Table};
use types::CqlType;

use crate::select::restriction::{Ask, Containing, Restriction};

/// An index names a value by its bytes, and their number by 16 bits.
pub(crate) const MAX_SIZE: usize = 65_535;

/// The bytes by which an index names the entry of a map: each part has its length before and an end
/// after it.
pub(crate) fn entry_size(key: &[u8], value: &[u8]) -> usize {
    key.len() + value.len() + 6
}

/// What is asked of an index.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Question {
    /// The value, or the entry of a map.
    Equal,
    /// A value or element of a collection.
    Contains,
    /// A key of a map.
    ContainsKey,
}

fn answers(index: &Index, column: &Column, question: Question) -> bool {
    let wanted = match (&column.ty, index.part()) {
        (CqlType::Map { frozen: false, .. }, IndexPart::Keys) => Question::ContainsKey,
        (CqlType::Map { frozen: false, .. }, IndexPart::Values)
        | (CqlType::List { frozen: false, .. } | CqlType::Set { frozen: false, .. }, _) => {
            Question::Contains
        }
        _ => Question::Equal,
    };
    wanted == question
}

/// Does an index serve a restriction, at least in part?
fn serves(index: &Index, column: &Column, restriction: &Restriction) -> bool {
    let asks = |question| answers(index, column, question);
    restriction.kind == column.kind
        && restriction.columns.contains(&column.index)
        && match &restriction.ask {
            Ask::Equal(_) => asks(Question::Equal),
            Ask::Contains(parts) => parts.iter().any(|part| match part {
                Containing::Value(_) => asks(Question::Contains),
                Containing::Key(_) => asks(Question::ContainsKey),
                Containing::Entry(..) => asks(Question::Equal),
            }),
            Ask::In(_) | Ask::Slice(..) | Ask::Near => false,
        }
}

/// Is there an index that serves a restriction, at least in part?
pub(super) fn is_served(table: &Table, restriction: &Restriction) -> bool {
    table.legacy_indexes().any(|(index, column)| serves(index, column, restriction))
}

/// Is there one index that finds by itself what all of the restrictions ask for?
pub(super) fn is_enough(table: &Table, restrictions: &[&Restriction]) -> bool {
    let alone = |restriction: &Restriction| match &restriction.ask {
        Ask::Contains(parts) => parts.len() == 1,
        _ => restriction.columns.len() == 1,
    };
    table.legacy_indexes().any(|(index, column)| {
        restrictions.iter().all(|one| alone(one) && serves(index, column, one))
    })
}

/// Is a column the target of an index, of whatever class?
pub(super) fn is_indexed(table: &Table, column: &str) -> bool {
    table.indexes.values().any(|index| index.target_column().as_deref() == Some(column))
}
