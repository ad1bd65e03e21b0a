//! Which known key an unknown one was meant to be.

/// Names further away than this many edits are no help.
const FARTHEST: usize = 6;

/// The candidate with the fewest edits (insert, remove, replace), if it is near enough for
/// the length of `name`.
pub(crate) fn nearest<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let limit = FARTHEST.min(name.len() / 3 + 1);
    candidates
        .filter(|c| c.len().abs_diff(name.len()) <= limit)
        .map(|c| (distance(name.as_bytes(), c.as_bytes()), c))
        .filter(|(edits, _)| *edits <= limit)
        .min()
        .map(|(_, c)| c)
}

fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (y, cell) in b.iter().zip(row.iter_mut().skip(1)) {
            let replaced = diagonal + usize::from(x != y);
            diagonal = *cell;
            left = replaced.min(left + 1).min(*cell + 1);
            *cell = left;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_edits() {
        assert_eq!(distance(b"kitten", b"sitting"), 3);
        assert_eq!(distance(b"", b"abc"), 3);
        assert_eq!(distance(b"same", b"same"), 0);
    }

    #[test]
    fn suggests_only_what_is_near() {
        let known = ["read_request_timeout", "num_tokens"];
        let ask = |name| nearest(name, known.iter().copied());
        assert_eq!(ask("read_request_timout"), Some("read_request_timeout"));
        assert_eq!(ask("num_token"), Some("num_tokens"));
        assert_eq!(ask("quux"), None);
    }
}
