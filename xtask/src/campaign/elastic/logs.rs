//! What nodes said: no line may be an error.

use std::fs;
use std::path::Path;

use crate::machine::{self, Outcome};
use crate::members::{self, Member};

use super::load::Load;

/// Where a Helenus' lines are kept, beside its data.
const LINES: &str = "system_logs.txt";
/// Lines of one node that are shown.
const SHOWN_MAX: usize = 5;

/// Errors in the logs of all nodes, of which some may have ended, one may have died, and one may
/// have left: it serves nobody.
pub fn errors(
    members: &[Member],
    (dead, left): (Option<&str>, Option<&str>),
    load: &mut Load,
) -> Outcome<Vec<String>> {
    // what Cassandra says of who does not answer
    let is_of_dead = |line: &str| {
        let connection = dead.map(|ip| format!("->/{ip}:"));
        connection.is_some_and(|it| line.contains(&it) && line.contains("failed to connect"))
    };
    let mut problems = Vec::new();
    for member in members {
        let text = match member.is_ours {
            false => fs::read_to_string(member.dir.join("log/system.log"))?,
            true => {
                let is_live = member.pid().is_ok() && left != Some(&member.ip);
                let said = if is_live { load.ask(&["logs", &member.ip])? } else { Vec::new() };
                let said = said.join("\n");
                fs::write(member.dir.join(LINES), &said)?;
                said + "\n" + &fs::read_to_string(member.dir.join("stderr.log"))?
            }
        };
        let lines = text.lines().filter(|line| is_error(line) && !is_of_dead(line)).take(SHOWN_MAX);
        problems.extend(lines.map(|line| format!("log of {}: {line}", member.ip)));
    }
    Ok(problems)
}

fn is_error(line: &str) -> bool {
    line.starts_with("ERROR ") || line.starts_with("WRONG: ") || line.contains("panicked at")
}

/// Copies all logs to where the next scenario leaves them.
pub fn keep(name: &str) -> Outcome {
    let to = machine::cache().join("elastic").join(name);
    let _ = fs::remove_dir_all(&to);
    for entry in fs::read_dir(members::home())?.filter_map(Result::ok) {
        let to = to.join(entry.file_name());
        fs::create_dir_all(&to)?;
        let names = [
            "stdout.log",
            "stderr.log",
            LINES,
            "log/system.log",
            "conf/cassandra.yaml",
            "conf/helenus.yaml",
        ];
        for name in names {
            let target = to.join(Path::new(name).file_name().unwrap_or_default());
            // of each node some of them are there
            let _ = fs::copy(entry.path().join(name), target);
        }
    }
    println!("its logs are in {}", to.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::is_error;

    #[test]
    fn an_error_is_a_line_that_says_so() {
        assert!(is_error("ERROR [main] 2026 A.java:1 - no"));
        assert!(is_error("thread 'shard-0' panicked at crates/a.rs:1:1:"));
        assert!(!is_error("WARN  [main] 2026 A.java:1 - an ERROR elsewhere"));
    }
}
