//! All tests of the crate in one program, as linking is what most of the time of many would go to;
//! but for those that want a process of their own.

mod both;
mod disk_queue;
mod real;
mod recorder;
mod sim;
