//! CQL types, their values, order and text; tokens, vints and times. Pure: no clock, no I/O.
//!
//! A value is its serialized bytes (native protocol spec v5, section 6), from the client's frame to the
//! SSTable: nothing here builds a tree of values on the path of a request.
#![forbid(unsafe_code)]

mod cql_type;
pub mod hash;

pub use cql_type::{CqlType, UserType};
