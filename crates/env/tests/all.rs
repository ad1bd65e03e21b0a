//! All tests of the crate in one program: linking is what most of the time of many would go to.

mod both;
mod disk_queue;
mod read_ahead;
mod real;
mod recorder;
mod sim;
