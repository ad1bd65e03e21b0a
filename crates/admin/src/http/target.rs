//! Which page a request's target names, and what of it.

/// A page of the endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Page {
    /// `/metrics`: this node's own names.
    Metrics,
    /// `/metrics/k8ssandra`: the names of k8ssandra's agent.
    K8ssandra {
        /// Of `?name=`, which may be repeated: how the names of metrics begin that are wanted. All
        /// are wanted if there is none.
        prefixes: Vec<String>,
    },
}

impl Page {
    /// The page at a target, in origin or absolute form (RFC 9112, 3.2).
    pub(super) fn of(target: &str) -> Option<Self> {
        let target = match target.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => {
                rest.find('/').and_then(|at| rest.get(at..)).unwrap_or("/")
            }
            _ => target,
        };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        match path {
            "/metrics" => Some(Self::Metrics),
            "/metrics/k8ssandra" => {
                let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
                let names = pairs.filter(|(key, _)| *key == "name");
                Some(Self::K8ssandra { prefixes: names.map(|(_, value)| decoded(value)).collect() })
            }
            _ => None,
        }
    }
}

/// A value of a query without its escapes; what is none stays as it is.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escaped = (*first == b'%').then(|| after.split_at_checked(2)).flatten();
        let escaped = escaped.and_then(|(digits, after)| Some((hex(digits)?, after)));
        let (byte, left) = escaped.unwrap_or((if *first == b'+' { b' ' } else { *first }, after));
        bytes.push(byte);
        rest = left;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(digits: &[u8]) -> Option<u8> {
    let value = |digit: &u8| char::from(*digit).to_digit(16);
    let [high, low] = digits else { return None };
    u8::try_from(value(high)? * 16 + value(low)?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn prefixes(query: &str) -> Vec<String> {
        match Page::of(&format!("/metrics/k8ssandra?{query}")) {
            Some(Page::K8ssandra { prefixes }) => prefixes,
            other => panic!("{query}: {other:?}"),
        }
    }

    #[test]
    fn a_filter_may_be_repeated() {
        assert_eq!(prefixes("name=a&name=b_c"), ["a", "b_c"]);
        assert_eq!(prefixes("x=1&name=a&name"), ["a"], "others are ignored");
        assert!(prefixes("").is_empty());
        assert_eq!(Page::of("/metrics?name=a"), Some(Page::Metrics), "it has no filter");
        assert_eq!(
            Page::of("http://a:7070/metrics/k8ssandra?name=a"),
            Some(Page::K8ssandra { prefixes: vec!["a".to_owned()] })
        );
    }

    #[test]
    fn escapes_are_undone() {
        assert_eq!(prefixes("name=a%5Fb+c"), ["a_b c"]);
        assert_eq!(prefixes("name=%C3%A4"), ["\u{e4}"]);
        assert_eq!(prefixes("name=%&name=%4&name=%zz&name=%ff"), ["%", "%4", "%zz", "\u{fffd}"]);
    }

    proptest! {
        #[test]
        fn no_query_is_refused(query in "\\PC{0,40}") {
            let target = format!("/metrics/k8ssandra?{query}");
            prop_assert!(Page::of(&target).is_some());
        }
    }
}
