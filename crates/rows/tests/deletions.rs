//! What Cassandra's memtable makes of deletions of ranges, and the markers that its reads see:
//! recorded by `conformance/deletions`, whose README.md tells the format.

use rows::*;
use std::fmt::Debug;
use types::CqlType;

const ANSWERS: &str = include_str!("../../../conformance/deletions/answers.txt");
const CASES: usize = 300;

fn layout() -> Layout {
    let clustering = |reversed| ClusteringColumn { ty: CqlType::Int, reversed };
    let value = ColumnLayout { name: "v".into(), ty: CqlType::Int };
    Layout::new(vec![clustering(false), clustering(true)], vec![], vec![value], false)
}

fn bound(word: &str) -> Bound {
    let symbols = word.find(|c: char| c.is_ascii_digit()).unwrap_or(word.len());
    let (symbols, values) = word.split_at(symbols);
    let kind = match symbols {
        "[" => BoundKind::InclStart,
        "(" => BoundKind::ExclStart,
        "]" => BoundKind::InclEnd,
        ")" => BoundKind::ExclEnd,
        ")[" => BoundKind::ExclEndInclStart,
        "](" => BoundKind::InclEndExclStart,
        _ => panic!("{word}"),
    };
    let values = values.split(',').filter(|value| !value.is_empty());
    let values: Vec<_> = values.map(|v| v.parse::<i32>().unwrap().to_be_bytes()).collect();
    Bound::new(kind, Clustering::new(values.iter().map(|value| Some(&value[..]))))
}

fn deletion(word: &str) -> Deletion {
    let (timestamp, seconds) = word.split_once('@').unwrap();
    Deletion::new(timestamp.parse().unwrap(), seconds.parse().unwrap())
}

fn range(text: &str) -> RangeTombstone {
    let words: Vec<_> = text.split(' ').collect();
    let [start, end, of] = words[..] else { panic!("{text}") };
    RangeTombstone { start: bound(start), end: bound(end), deletion: deletion(of) }
}

/// A place, what ends there and what starts.
type Marker = (Bound, Option<Deletion>, Option<Deletion>);

fn marker(text: &str) -> Marker {
    let mut words = text.split(' ');
    let place = bound(words.next().unwrap());
    let (is_end, is_start) = (place.kind.is_end(), place.kind.is_start());
    let mut next = |is: bool| is.then(|| deletion(words.next().unwrap()));
    let (end, start) = (next(is_end), next(is_start));
    (place, end, start)
}

fn all<T>(text: &str, of: impl Fn(&str) -> T) -> Vec<T> {
    text.split(" ; ").filter(|text| !text.is_empty()).map(of).collect()
}

/// Ranges that touch and have the same deletion, as one.
fn joined(layout: &Layout, ranges: Vec<RangeTombstone>) -> Vec<RangeTombstone> {
    let mut joined: Vec<RangeTombstone> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last)
                if last.deletion == range.deletion
                    && compare(layout, &last.end, &range.start).is_eq() =>
            {
                last.end = range.end;
            }
            _ => joined.push(range),
        }
    }
    joined
}

/// What a read of slices of the one memtable sees.
fn read(
    layout: &Layout,
    list: &RangeTombstoneList,
    partition: Deletion,
    slices: &[(Bound, Bound)],
    reversed: bool,
) -> Vec<Marker> {
    let mut slices: Vec<_> = slices.iter().collect();
    if reversed {
        slices.reverse();
    }
    let within = |(start, end): &&(Bound, Bound)| {
        let markers = list.markers_within(layout, start.as_ref(), end.as_ref(), reversed);
        markers.map(|m| (m.bound.to_owned(), m.end, m.start)).collect::<Vec<_>>()
    };
    let markers: Vec<_> = slices.iter().flat_map(within).collect();
    let mut merger = UnfilteredMerger::new(1, partition, reversed);
    let (mut seen, mut scratch) = (Vec::new(), RowBuilder::new());
    for (bound, end, start) in &markers {
        let marker = MarkerRef { bound: bound.as_ref(), end: *end, start: *start };
        let heads = [Some(Unfiltered::Marker(marker))];
        if let Step::Next(Unfiltered::Marker(marker)) =
            merger.step(layout, &heads[..], &mut scratch)
        {
            let end = marker.bound.kind.is_end().then_some(marker.end);
            let start = marker.bound.kind.is_start().then_some(marker.start);
            seen.push((marker.bound.to_owned(), end, start));
        }
    }
    seen
}

fn same<T: PartialEq + Debug>(line: usize, ours: &[T], theirs: &[T]) {
    assert_eq!(ours, theirs, "line {}", line + 1);
}

#[test]
fn a_memtable_keeps_the_ranges_that_cassandra_keeps_and_shows_the_same_markers() {
    let layout = layout();
    let (mut list, mut partition, mut cases) = (RangeTombstoneList::new(), Deletion::LIVE, 0);
    for (at, line) in ANSWERS.lines().enumerate() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "case" => {
                (list, partition) = (RangeTombstoneList::new(), Deletion::LIVE);
                cases += 1;
            }
            "partition" => partition = partition.max(deletion(rest)),
            "update" => {
                let mut update = RangeTombstoneList::new();
                all(rest, range).into_iter().for_each(|range| update.insert(&layout, range));
                update.iter().for_each(|range| list.insert(&layout, range.clone()));
            }
            "list" => {
                let ours: Vec<_> = list.iter().cloned().collect();
                same(at, &ours, &joined(&layout, all(rest, range)));
            }
            "forwards" | "backwards" => {
                let (slices, markers) = rest.split_once(" :").unwrap();
                let slices = all(slices, |slice| {
                    let (start, end) = slice.split_once(' ').unwrap();
                    (bound(start), bound(end))
                });
                let ours = read(&layout, &list, partition, &slices, word == "backwards");
                same(at, &ours, &all(markers.trim_start(), marker));
            }
            _ => panic!("{line}"),
        }
    }
    assert_eq!(cases, CASES);
}
