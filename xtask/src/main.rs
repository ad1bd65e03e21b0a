//! The project's commands: `cargo xtask run | test | bench | campaign | peer`.
fn main() {}
