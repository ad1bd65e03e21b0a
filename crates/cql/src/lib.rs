//! CQL 3.4.7, the language of Apache Cassandra 5.0: text to tokens to syntax tree. Pure: no clock, no I/O.
#![forbid(unsafe_code)]

pub mod ast;
mod lexer;
mod parser;

pub use lexer::Keyword;
pub use parser::{MAX_DEPTH, ParseError, SyntaxError, parse};
