//! The server against clients, in both makes of `env`.

mod client;
mod ends;
mod golden;
mod handshake;
mod limits;
mod mock;
mod shards;
mod statements;
mod world;
