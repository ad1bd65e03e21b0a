//! All tests of the crate in one program: linking is what most of the time of many would go to.

#[path = "commitlog/main.rs"]
mod commitlog;
mod common;
#[path = "engine/main.rs"]
mod engine;
mod formats;
#[path = "repairs/main.rs"]
mod repairs;
#[path = "strategies/main.rs"]
mod strategies;
