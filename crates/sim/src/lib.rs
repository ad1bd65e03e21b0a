//! The simulator: worlds in which a node is killed, loses power, has its clock set and its disk
//! slowed, while clients write and read; a model that says what they may see; and bugs planted to
//! prove that it would notice.
//!
//! Everything follows from a seed: a failing one is repeated by its number.
#![forbid(unsafe_code)]
#![allow(async_fn_in_trait, reason = "one thread, and no other crate implements it")]

pub mod canary;
pub mod cas;
pub mod connection;
pub mod counters;
pub mod coverage;
pub mod cql_node;
mod cql_site;
pub mod engine_node;
pub mod failed;
pub mod faults;
pub mod history;
pub mod images;
pub mod operation;
pub mod plan;
pub mod ring;
pub mod site;
pub mod statement;
pub mod tables;
pub mod target;
pub mod workload;
pub mod world;
