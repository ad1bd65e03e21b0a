//! `TOC.txt`: the names of a table's components, one a line, itself included.

use crate::descriptor::Component;

/// Reads the list. Empty lines are passed over, as are names of components unknown to us:
/// an index may keep files beside the ones of the format.
pub fn parse(text: &str) -> Vec<Component> {
    text.lines().map(str::trim).filter(|l| !l.is_empty()).map(Component::parse).collect()
}

/// The list as text.
pub fn encode<'a>(components: impl IntoIterator<Item = &'a Component>) -> String {
    components.into_iter().map(|c| format!("{c}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_cassandras() {
        for text in [
            include_str!("../testdata/lz4/nb-1-big-TOC.txt"),
            include_str!("../testdata/plain/nb-1-big-TOC.txt"),
        ] {
            let components = parse(text);
            assert!(components.contains(&Component::Toc));
            assert!(!components.iter().any(|c| matches!(c, Component::Other(_))));
            assert_eq!(encode(&components), text);
        }
    }
}
