//! Functions of collections.

use types::CqlType;
use types::value::{Elements, Entries, pack_list};

use crate::error::CqlError;
use crate::term::function::aggregate::{Aggregate, State};

/// The keys of a map, as a set.
pub fn map_keys(map: &[u8]) -> Vec<u8> {
    let entries = Entries::of(map).into_iter().flatten().flatten();
    pack_list(entries.map(|(key, _)| key))
}

/// The values of a map, as a list.
pub fn map_values(map: &[u8]) -> Vec<u8> {
    let entries = Entries::of(map).into_iter().flatten().flatten();
    pack_list(entries.map(|(_, value)| value))
}

/// The number of elements or entries: the first four bytes of any collection.
pub fn count(value: &[u8]) -> Vec<u8> {
    value.first_chunk::<4>().copied().unwrap_or_default().to_vec()
}

/// An aggregate over the elements of a list or set.
pub fn fold(aggregate: Aggregate, ty: &CqlType, value: &[u8]) -> Result<Option<Vec<u8>>, CqlError> {
    let (CqlType::List { element, .. } | CqlType::Set { element, .. }) = ty else {
        return Ok(None);
    };
    let mut state = State::new(aggregate, element);
    for item in Elements::of_list(value).into_iter().flatten().flatten() {
        state.add(item)?;
    }
    Ok(state.value())
}
