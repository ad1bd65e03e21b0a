//! Verbs of caches.

use super::args::Args;
use super::{Verb, VerbError, refused};

/// What the arguments are, as errors name them.
const CAPACITIES: &str = "<key-cache-capacity> <row-cache-capacity> <counter-cache-capacity>";

/// Three numbers; that of counters is looked at and has no effect.
pub(super) fn set_capacity(args: &mut Args) -> Result<Verb, VerbError> {
    let words = args.rest();
    if words.is_empty() {
        return refused(format!("Required parameters are missing: {CAPACITIES}"));
    }
    let mut mebibytes = Vec::with_capacity(words.len());
    for word in words {
        match word.parse::<i32>() {
            Ok(number) => mebibytes.push(number),
            Err(_) => {
                return refused(format!("{CAPACITIES}: can not convert \"{word}\" to a Integer"));
            }
        }
    }
    let Ok([keys, rows, counters]) = <[i32; 3]>::try_from(mebibytes) else {
        return refused(
            "setcachecapacity requires key-cache-capacity, row-cache-capacity, and counter-cache-capacity args.",
        );
    };
    Ok(Verb::SetCacheCapacity { keys, rows, counters })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verb::parse;

    #[test]
    fn capacities_are_three_numbers() {
        let text = |line: &str| parse(line).unwrap_err().to_string();
        assert_eq!(
            text("setcachecapacity"),
            format!("Required parameters are missing: {CAPACITIES}")
        );
        assert_eq!(
            text("setcachecapacity 1 x 3"),
            format!("{CAPACITIES}: can not convert \"x\" to a Integer")
        );
        assert_eq!(
            text("setcachecapacity 1 2"),
            "setcachecapacity requires key-cache-capacity, row-cache-capacity, and counter-cache-capacity args."
        );
        assert_eq!(
            parse("setcachecapacity 1 -2 3"),
            Ok(Verb::SetCacheCapacity { keys: 1, rows: -2, counters: 3 })
        );
    }
}
