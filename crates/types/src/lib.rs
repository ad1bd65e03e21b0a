//! CQL types, their values, order and text; tokens, vints and times. Pure: no clock, no I/O.
//!
//! A value is its serialized bytes (native protocol spec v5, section 6), from the client's frame to
//! the SSTable: nothing here builds a tree of values on the path of a request.
#![forbid(unsafe_code)]

mod address;
pub mod byte_comparable;
mod class;
mod compare;
mod cql_type;
pub mod decimal;
pub mod decimal_math;
mod duration;
mod few;
pub mod float;
pub mod hash;
pub mod hex;
pub mod java_order;
mod json;
mod json_parse;
mod key_bytes;
mod literal;
mod marshal;
mod name;
pub mod properties;
mod text;
pub mod time;
mod timestamp;
mod token;
mod token_range;
pub mod uuid;
mod validate;
pub mod value;
pub mod vint;

pub use address::Address;
pub use cql_type::{ClassType, Component, CqlType, MAX_DEPTH, UserType};
pub use decimal::Decimal;
pub use duration::{Duration, DurationError};
pub use few::Few;
pub use json_parse::{Json, JsonError};
pub use key_bytes::KeyBytes;
pub use literal::LiteralError;
pub use marshal::{MarshalError, key_to_marshal_string, parse_key_marshal};
pub use name::{NameError, is_reserved, maybe_quote};
pub use token::{SHARDING_IGNORED_BITS, Token, hash128, hash128_unsigned, shard_of};
pub use token_range::TokenRange;
pub use uuid::Uuid;
pub use validate::ValueError;
pub use vint::{ReadError, Reader, TooLong, WriteBytes};
