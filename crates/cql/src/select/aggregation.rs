//! An aggregation on its way: over all rows of a read, or over a group of them.

use crate::error::CqlError;
use crate::select::cell;
use crate::term::function::aggregate::State;

/// Aggregates on their way, and parts of the first row.
#[derive(Clone, Debug)]
pub struct Aggregation {
    states: Vec<State>,
    firsts: Option<Vec<Option<Box<[u8]>>>>,
}

impl Aggregation {
    pub(super) fn new(states: Vec<State>) -> Self {
        Self { states, firsts: None }
    }

    pub(super) fn value(&self, index: usize) -> Option<Vec<u8>> {
        self.states.get(index)?.value()
    }

    /// A part of the first row; nothing if there was no row.
    pub(super) fn first(&self, index: usize) -> Option<Option<&[u8]>> {
        self.firsts.as_ref()?.get(index).map(Option::as_deref)
    }

    /// Takes in what another shard aggregated; only where [`super::Select::merges`].
    pub fn merge(&mut self, other: Self) -> Result<(), CqlError> {
        for (state, more) in self.states.iter_mut().zip(other.states) {
            state.merge(more)?;
        }
        Ok(())
    }

    /// Takes the argument that an aggregate has in a row in.
    pub(super) fn add(&mut self, index: usize, argument: Option<&[u8]>) -> Result<(), CqlError> {
        self.states.get_mut(index).map_or(Ok(()), |state| state.add(argument))
    }

    /// Has it yet to meet its first row?
    pub(super) fn has_no_firsts(&self) -> bool {
        self.firsts.is_none()
    }

    pub(super) fn keep_firsts(&mut self, firsts: Vec<Option<Box<[u8]>>>) {
        self.firsts = Some(firsts);
    }

    /// Takes a row in by its cells ([`super::Select::inputs`]).
    pub(super) fn add_inputs(&mut self, firsts: usize, cells: &mut &[u8]) -> Result<(), CqlError> {
        for state in &mut self.states {
            state.add(cell::next(cells))?;
        }
        let given: Vec<_> = (0..firsts).map(|_| cell::next(cells)).collect();
        if self.firsts.is_none() && firsts > 0 {
            self.firsts = Some(given.into_iter().map(|value| value.map(Into::into)).collect());
        }
        Ok(())
    }
}
