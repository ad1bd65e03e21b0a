//! All tests of the crate in one program: linking is what most of the time of many would go to.

mod common;
mod connection;
mod frames;
mod handshake;
mod messages;
mod reads;
mod schema_versions;
mod writes;
