//! All tests of the crate in one program: linking is what most of the time of many would go to.

mod common;
mod demo;
mod http;
mod json;
mod plan;
mod remote;
mod repair;
mod ring;
mod samples;
mod settings;
mod socket;
mod verbs;
