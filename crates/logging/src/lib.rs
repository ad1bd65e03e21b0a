//! The node's log as decisions: how a line reads, which lines are written, when a file rolls and
//! which old ones go. It opens no file and knows no clock.
#![forbid(unsafe_code)]

mod areas;
mod levels;
mod line;
mod rolling;

pub use areas::Area;
pub use levels::{LOGGERS_MAX, Levels, ROOT, SetLevel, Threshold};
pub use line::{Format, Line, MESSAGE_BYTES_MAX, Place, Thread};
pub use rolling::{FILE, Rolling, Settings};
