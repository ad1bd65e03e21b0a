//! Verbs of caches: `tools.nodetool.InvalidateKeyCache`, `SetCacheCapacity` and their kin.

use super::args::Args;
use super::{VerbError, refused};
use crate::operator::CacheName;

/// What the arguments are, as errors name them.
const CAPACITIES: &str = "<key-cache-capacity> <row-cache-capacity> <counter-cache-capacity>";
const KEYS_TO_SAVE: &str =
    "<key-cache-keys-to-save> <row-cache-keys-to-save> <counter-cache-keys-to-save>";

/// A verb of caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CachesVerb {
    /// `invalidatekeycache`, `invalidaterowcache`, `invalidatecountercache`: empties a cache.
    Invalidate(CacheName),
    /// `setcachecapacity`: sets what caches may hold, in MiB, until the next start.
    SetCapacity {
        /// Of keys.
        keys: i32,
        /// Of rows.
        rows: i32,
        /// Of counters.
        counters: i32,
    },
    /// `setcachekeystosave`: sets of how many entries of each cache the names are saved, until the
    /// next start; 0: of all.
    SetKeysToSave {
        /// Of keys.
        keys: i32,
        /// Of rows.
        rows: i32,
        /// Of counters.
        counters: i32,
    },
}

/// The verb of that name, if it is one of these.
pub(super) fn parse(name: &str, args: &mut Args) -> Result<Option<CachesVerb>, VerbError> {
    Ok(Some(match name {
        "invalidatecountercache" => CachesVerb::Invalidate(CacheName::Counters),
        "invalidatekeycache" => CachesVerb::Invalidate(CacheName::Keys),
        "invalidaterowcache" => CachesVerb::Invalidate(CacheName::Rows),
        "setcachecapacity" => set_capacity(args)?,
        "setcachekeystosave" => set_keys_to_save(args)?,
        _ => return Ok(None),
    }))
}

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
fn set_capacity(args: &mut Args) -> Result<CachesVerb, VerbError> {
    let wanted = "setcachecapacity requires key-cache-capacity, row-cache-capacity, and counter-cache-capacity args.";
    let [keys, rows, counters] = of_each(args, CAPACITIES, wanted)?;
    Ok(CachesVerb::SetCapacity { keys, rows, counters })
}

/// Entries of which the names are saved.
fn set_keys_to_save(args: &mut Args) -> Result<CachesVerb, VerbError> {
    let wanted = "setcachekeystosave requires key-cache-keys-to-save, row-cache-keys-to-save, and counter-cache-keys-to-save args.";
    let [keys, rows, counters] = of_each(args, KEYS_TO_SAVE, wanted)?;
    Ok(CachesVerb::SetKeysToSave { keys, rows, counters })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodetool::verb::{self, Verb};

    fn parse(line: &str) -> Result<CachesVerb, VerbError> {
        match verb::parse(line)? {
            Verb::Caches(verb) => Ok(verb),
            other => panic!("{other:?}"),
        }
    }

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
            Ok(CachesVerb::SetCapacity { keys: 1, rows: -2, counters: 3 })
        );
        assert_eq!(
            parse("setcachekeystosave 1 -2 3"),
            Ok(CachesVerb::SetKeysToSave { keys: 1, rows: -2, counters: 3 })
        );
    }
}
