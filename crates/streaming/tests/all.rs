//! Tests of streams.

mod session;
mod wire;
