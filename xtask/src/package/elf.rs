//! Which glibc a program needs, by the versions of the symbols that it uses.

use std::path::Path;
use std::process::Command;

use crate::machine::Outcome;

/// The newest version of glibc that one of the programs names, as (2, 34).
pub fn glibc(programs: &[&Path]) -> Outcome<(u32, u32)> {
    let mut newest = (0, 0);
    for program in programs {
        let read = Command::new("readelf").args(["-W", "-V"]).arg(program).output();
        let read = read.map_err(|e| format!("readelf: {e} (apt-get install binutils)"))?;
        newest = newest.max(newest_of(&String::from_utf8_lossy(&read.stdout)));
    }
    match newest {
        (0, 0) => Err("the programs name no version of glibc".into()),
        found => Ok(found),
    }
}

/// The newest of `GLIBC_2.17` and the like in a text.
fn newest_of(text: &str) -> (u32, u32) {
    let versions = text.split("GLIBC_").skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
        let mut numbers = rest[..end.unwrap_or(rest.len())].split('.').map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    });
    versions.max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::newest_of;

    #[test]
    fn finds_the_newest_version() {
        let text = "0x0010: Name: GLIBC_2.9  Flags: none\nName: GLIBC_2.34  Version: 3\n\
                    Name: GLIBC_2.2.5 Version: 2\nName: GLIBC_PRIVATE\nName: GCC_3.0";
        assert_eq!(newest_of(text), (2, 34));
        assert_eq!(newest_of("static"), (0, 0));
    }
}
