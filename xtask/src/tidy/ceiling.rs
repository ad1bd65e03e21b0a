//! Numbers that may only fall: what a table says is left must be what is found.

use std::collections::BTreeMap;

/// A number for each of some folders or files.
pub type Table = [(&'static str, usize)];

/// Where the numbers found are not those of the table. What the table does not name is 0.
pub fn differences(what: &str, found: &BTreeMap<String, usize>, table: &Table) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, count) in found {
        let ceiling = table.iter().find(|row| row.0 == name).map_or(0, |row| row.1);
        if *count > ceiling {
            problems.push(format!("{name}: {what}: {count}, at most {ceiling}"));
        }
    }
    for (name, ceiling) in table {
        let count = found.get(*name).copied().unwrap_or(0);
        if count < *ceiling {
            problems.push(format!("{name}: {what}: {count}, lower the ceiling of {ceiling}"));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::differences;
    use std::collections::BTreeMap;

    #[test]
    fn is_neither_exceeded_nor_higher_than_it_need_be() {
        let found = BTreeMap::from([("a".to_owned(), 2), ("b".to_owned(), 0)]);
        assert!(differences("lines", &found, &[("a", 2)]).is_empty());
        assert_eq!(differences("lines", &found, &[]), ["a: lines: 2, at most 0"]);
        assert_eq!(differences("lines", &found, &[("a", 1)]), ["a: lines: 2, at most 1"]);
        assert_eq!(
            differences("lines", &found, &[("a", 3)]),
            ["a: lines: 2, lower the ceiling of 3"]
        );
        assert_eq!(differences("lines", &found, &[("a", 2), ("c", 1)]).len(), 1);
    }
}
