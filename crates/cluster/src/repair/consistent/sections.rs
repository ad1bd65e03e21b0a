//! Which part of a table was repaired when (`RepairedState`). Pure.

use std::collections::BTreeSet;

use types::{Token, TokenRange};

/// Parts of some ranges, each with the time when it was last repaired, in milliseconds since 1970;
/// 0 for never. `repaired`: ranges and times of repairs that succeeded.
pub(super) fn sections(
    ranges: &[TokenRange],
    repaired: &[(Vec<TokenRange>, i64)],
) -> Vec<(TokenRange, i64)> {
    let ranges = TokenRange::normalize(ranges.iter().copied());
    let mut latest: Vec<_> = repaired.iter().collect();
    latest.sort_by_key(|(_, at)| std::cmp::Reverse(*at));
    let (mut sections, mut left) = (Vec::new(), ranges);
    for (repaired, at) in latest {
        let repaired = TokenRange::normalize(repaired.iter().copied());
        let without = |range: &TokenRange| range.without(&repaired);
        let rest: Vec<_> = left.iter().flat_map(without).collect();
        let taken = left.iter().flat_map(|range| range.without(&rest));
        sections.extend(taken.map(|range| (range, *at)));
        left = TokenRange::normalize(rest);
    }
    sections.extend(left.into_iter().map(|range| (range, 0)));
    sections.sort_by_key(|(range, _)| range.left);
    joined(sections)
}

/// Neighbors of the same time as one, over the ring's end too.
fn joined(sections: Vec<(TokenRange, i64)>) -> Vec<(TokenRange, i64)> {
    let mut all: Vec<(TokenRange, i64)> = Vec::with_capacity(sections.len());
    for (range, at) in sections {
        match all.last_mut() {
            Some((last, of)) if last.right == range.left && *of == at => last.right = range.right,
            _ => all.push((range, at)),
        }
    }
    if let [(first, of), .., (last, at)] = all.as_mut_slice()
        && (first.left, last.right) == (Token::MIN, Token::MIN)
        && of == at
    {
        last.right = first.right;
        all.remove(0);
    }
    all
}

/// Was all that a repair repaired repaired later too?
pub(super) fn is_superseded(
    ranges: &BTreeSet<TokenRange>,
    at: i64,
    others: &[(Vec<TokenRange>, i64)],
) -> bool {
    let ranges: Vec<_> = ranges.iter().copied().collect();
    sections(&ranges, others).iter().all(|(_, last)| *last > at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(left: i64, right: i64) -> TokenRange {
        TokenRange { left: Token(left), right: Token(right) }
    }

    #[test]
    fn a_part_is_as_old_as_its_last_repair() {
        let repaired = [(vec![range(0, 100)], 5), (vec![range(50, 80)], 9)];
        let all = [range(-10, 90), range(95, 200)];
        assert_eq!(
            sections(&all, &repaired),
            [
                (range(-10, 0), 0),
                (range(0, 50), 5),
                (range(50, 80), 9),
                (range(80, 90), 5),
                (range(95, 100), 5),
                (range(100, 200), 0)
            ]
        );
        assert_eq!(sections(&all, &[]), [(range(-10, 90), 0), (range(95, 200), 0)]);
        let whole = [TokenRange::ALL];
        assert_eq!(sections(&whole, &[]), [(TokenRange::ALL, 0)]);
        let one = [(vec![range(0, 100)], 5)];
        assert_eq!(sections(&whole, &one), [(range(0, 100), 5), (range(100, 0), 0)]);
        let all = [range(-50, 0), range(0, 50), range(50, -50)];
        assert_eq!(sections(&all, &[(all.to_vec(), 5)]), [(TokenRange::ALL, 5)]);
        let of = |left, right| BTreeSet::from([range(left, right)]);
        assert!(is_superseded(&of(50, 80), 5, &repaired));
        assert!(!is_superseded(&of(50, 81), 5, &repaired));
        assert!(!is_superseded(&of(50, 80), 9, &repaired));
    }
}
