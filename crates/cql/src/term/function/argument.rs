//! What the arguments of a call are asked before it is known which function is called.

use types::CqlType;

use crate::error::CqlError;
use crate::scope::ColumnSpec;
use crate::term::assignment::Assignment;

/// An argument of a call whose overload is sought: a term, or something selected.
pub trait Argument {
    /// Does it fit a parameter?
    fn test(&self, receiver: &ColumnSpec) -> Result<Assignment, CqlError>;
    /// As error messages show it.
    fn text(&self) -> String;
    /// The type it would be given without a parameter to meet (`getCompatibleTypeIfKnown`).
    fn known_type(&self) -> Option<CqlType>;
    /// The number of elements, if it is a literal in brackets in a selection, which may be a
    /// vector.
    fn array_size(&self) -> Option<u32> {
        None
    }
    /// Is it a bind marker?
    fn is_marker(&self) -> bool {
        false
    }
}
