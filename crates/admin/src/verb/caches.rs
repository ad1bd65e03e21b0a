//! Verbs of caches.

use super::args::Args;
use super::{Verb, VerbError, refused};

/// What the arguments are, as errors name them.
const CAPACITIES: &str = "<key-cache-capacity> <row-cache-capacity> <counter-cache-capacity>";
const KEYS_TO_SAVE: &str =
    "<key-cache-keys-to-save> <row-cache-keys-to-save> <counter-cache-keys-to-save>";

/// A number for each cache; `wanted` is what is said where there are more or fewer.
fn of_each(args: &mut Args, names: &str, wanted: &str) -> Result<[i32; 3], VerbError> {
    let words = args.rest();
    if words.is_empty() {
        return refused(format!("Required parameters are missing: {names}"));
    }
    let mut numbers = Vec::with_capacity(words.len());
    for word in words {
        match word.parse::<i32>() {
            Ok(number) => numbers.push(number),
            Err(_) => return refused(format!("{names}: can not convert \"{word}\" to a Integer")),
        }
    }
    <[i32; 3]>::try_from(numbers).or_else(|_| refused(wanted.to_owned()))
}

/// Mebibytes.
pub(super) fn set_capacity(args: &mut Args) -> Result<Verb, VerbError> {
    let wanted = "setcachecapacity requires key-cache-capacity, row-cache-capacity, and counter-cache-capacity args.";
    let [keys, rows, counters] = of_each(args, CAPACITIES, wanted)?;
    Ok(Verb::SetCacheCapacity { keys, rows, counters })
}

/// Entries of which the names are saved.
pub(super) fn set_keys_to_save(args: &mut Args) -> Result<Verb, VerbError> {
    let wanted = "setcachekeystosave requires key-cache-keys-to-save, row-cache-keys-to-save, and counter-cache-keys-to-save args.";
    let [keys, rows, counters] = of_each(args, KEYS_TO_SAVE, wanted)?;
    Ok(Verb::SetCacheKeysToSave { keys, rows, counters })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verb::parse;

    #[test]
    fn capacities_and_keys_are_three_numbers() {
        let text = |line: &str| parse(line).unwrap_err().to_string();
        for (verb, names) in
            [("setcachecapacity", CAPACITIES), ("setcachekeystosave", KEYS_TO_SAVE)]
        {
            assert_eq!(text(verb), format!("Required parameters are missing: {names}"));
            assert_eq!(
                text(&format!("{verb} 1 x 3")),
                format!("{names}: can not convert \"x\" to a Integer")
            );
        }
        assert_eq!(
            text("setcachecapacity 1 2"),
            "setcachecapacity requires key-cache-capacity, row-cache-capacity, and counter-cache-capacity args."
        );
        assert_eq!(
            text("setcachekeystosave 1 2"),
            "setcachekeystosave requires key-cache-keys-to-save, row-cache-keys-to-save, and counter-cache-keys-to-save args."
        );
        assert_eq!(
            parse("setcachecapacity 1 -2 3"),
            Ok(Verb::SetCacheCapacity { keys: 1, rows: -2, counters: 3 })
        );
        assert_eq!(
            parse("setcachekeystosave 1 -2 3"),
            Ok(Verb::SetCacheKeysToSave { keys: 1, rows: -2, counters: 3 })
        );
    }
}
