//! The codec: what is written is read, in all formats and in pieces; what is not an encoding is an
//! error.

mod common;

use common::*;
use std::sync::Arc;

use proptest::prelude::*;
use rows::codec::*;
use rows::*;
use types::{CqlType, Reader};

const FORMATS: [Format; 3] = [Format::Messaging12, Format::SstableNb, Format::SstableOa];

fn encode(mutation: &Mutation) -> Vec<u8> {
    let mut out = Vec::new();
    MutationEncoder::new().mutation(mutation, &mut out).expect("encodes");
    out
}

fn decode(bytes: &[u8]) -> Result<(Mutation, usize), CodecError> {
    let layout = layout();
    let mut reader = Reader::new(bytes);
    let mutation = MutationDecoder::new().mutation(&mut reader, &|_| Some(layout.clone()))?;
    Ok((mutation, reader.position()))
}

fn assert_same(a: &Mutation, b: &Mutation) -> Result<(), TestCaseError> {
    prop_assert_eq!(a.key(), b.key());
    prop_assert_eq!(a.token(), b.token());
    prop_assert_eq!(a.updates().len(), b.updates().len());
    for (a, b) in a.updates().iter().zip(b.updates()) {
        prop_assert_eq!(a.table, b.table);
        prop_assert_eq!(a.deletion, b.deletion);
        prop_assert_eq!(a.static_row(), b.static_row());
        prop_assert_eq!(a.rows.iter().collect::<Vec<_>>(), b.rows.iter().collect::<Vec<_>>());
        prop_assert_eq!(&a.ranges, &b.ranges);
    }
    Ok(())
}

fn stats_of(update: &PartitionUpdate) -> EncodingStats {
    EncodingStats::of(update)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn mutations_come_back(facts in prop::collection::vec(fact(), 0..40)) {
        let layout = layout();
        let mut mutation = Mutation::new(update_of(&layout, &facts));
        let mut other = update_of(&layout, &facts[..facts.len() / 2]);
        other.table = [8; 16];
        mutation.push(other).expect("the same key");
        let bytes = encode(&mutation);
        let (decoded, consumed) = decode(&bytes).expect("decodes");
        prop_assert_eq!(consumed, bytes.len());
        assert_same(&mutation, &decoded)?;
    }

    #[test]
    fn unfiltereds_come_back_in_pieces(
        facts in prop::collection::vec(fact(), 0..40),
        format in prop::sample::select(FORMATS.to_vec()),
        step in 1usize..40,
    ) {
        let layout = layout();
        let update = update_of(&layout, &facts);
        let header = Header::of_layout(format, stats_of(&update), &layout);
        let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new());
        let mut bytes = Vec::new();
        let mut previous = 0;
        for unfiltered in update.unfiltereds(false) {
            let start = bytes.len();
            encoder.unfiltered(&layout, &header, unfiltered, previous, &mut bytes).expect("encodes");
            previous = (bytes.len() - start) as u64;
        }
        Encoder::end(&mut bytes);
        let mut expected = update.unfiltereds(false);
        let (mut at, mut fed) = (0, 0);
        loop {
            if format.has_sizes()
                && let Peeked::At { position, len } =
                    decoder.peek(&layout, &header, &bytes[at..]).expect("peeks")
            {
                let next = expected.clone().next().expect("one more");
                prop_assert_eq!(position, next.position());
                let whole = decoder.unfiltered(&layout, &header, &bytes[at..at + len]);
                let took_it_all = matches!(
                    whole,
                    Ok(Decoded::Unfiltered { consumed, .. }) if consumed == len
                );
                prop_assert!(took_it_all);
            }
            match decoder.unfiltered(&layout, &header, &bytes[at..fed]).expect("decodes") {
                Decoded::NeedMore(wanted) => {
                    prop_assert!(at + wanted > fed && at + wanted <= bytes.len());
                    fed = (at + wanted).max(fed + step).min(bytes.len());
                }
                Decoded::Unfiltered { unfiltered, consumed } => {
                    prop_assert_eq!(Some(unfiltered), expected.next());
                    at += consumed;
                }
                Decoded::End { consumed } => {
                    prop_assert_eq!(at + consumed, bytes.len());
                    break;
                }
                other => prop_assert!(false, "{other:?}"),
            }
        }
        prop_assert_eq!(expected.next(), None);
    }

    /// Whatever of a damaged mutation is read can be written, and is the same when read again.
    #[test]
    fn damaged_mutations_are_errors_or_mutations(
        facts in prop::collection::vec(fact(), 0..12),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
        cuts in any::<bool>(),
    ) {
        let layout = layout();
        let mut bytes = encode(&Mutation::new(update_of(&layout, &facts)));
        for (at, with) in damage {
            let at = at.index(bytes.len());
            bytes[at] ^= with;
        }
        if cuts {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok((mutation, consumed)) = decode(&bytes) {
            let size: usize = mutation.updates().iter().map(|update| update.size()).sum();
            prop_assert!(size <= 64 * consumed + 1024, "{size} from {consumed}");
            let again = encode(&mutation);
            assert_same(&mutation, &decode(&again).expect("decodes again").0)?;
        }
    }

    #[test]
    fn any_bytes_are_errors_or_something(
        bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0u8..4, Just(0xff)], 0..200),
    ) {
        let layout = layout();
        let _ = decode(&bytes);
        let fetched = Header::of_layout(Format::Messaging12, EncodingStats::NONE, &layout);
        let mut decoder = Decoder::new();
        for selection in [Selection::Names, Selection::Fetched(&fetched)] {
            let _ = read_partition_start(&layout, selection, &bytes, &mut decoder);
        }
        for format in FORMATS {
            let _ = read_partition_deletion(format, &mut Reader::new(&bytes));
            let header = Header::of_layout(format, EncodingStats::NONE, &layout);
            let _ = decoder.static_row(&layout, &header, &bytes);
            let mut rest = &bytes[..];
            while let Ok(Decoded::Unfiltered { consumed, .. } | Decoded::Nothing { consumed }) =
                decoder.unfiltered(&layout, &header, rest)
            {
                rest = &rest[consumed..];
            }
            if format.has_sizes() {
                let _ = decoder.peek(&layout, &header, &bytes);
            }
        }
    }
}

#[test]
fn a_claimed_length_allocates_nothing() {
    let layout = layout();
    let header = Header::of_layout(Format::SstableNb, EncodingStats::NONE, &layout);
    // A row whose body claims 2^62 bytes.
    let mut bytes = vec![0x20, 0x05];
    bytes.extend([0xff, 0x40, 0, 0, 0, 0, 0, 0, 0]);
    let mut decoder = Decoder::new();
    let result = decoder.unfiltered(&layout, &header, &bytes);
    assert!(matches!(result, Err(CodecError { problem: Problem::TooLarge(_), .. })));
    // A mutation that claims 2^32 updates.
    let result = decode(&[0xf0, 0xff, 0xff, 0xff, 0xff]);
    assert!(matches!(result, Err(CodecError { problem: Problem::Read(_), .. })));
}

#[test]
fn a_row_that_overruns_its_size_is_corrupt_not_unfinished() {
    let layout = layout();
    let header = Header::of_layout(Format::SstableNb, EncodingStats::NONE, &layout);
    let mut builder = RowBuilder::new();
    let at = clustering_of(&[1, 2]);
    builder.start_row(at.as_ref());
    builder.cell(CellRef::live(0, None, 5, &[0, 0, 0, 1]));
    let row = builder.finish_row(&layout);
    let mut bytes = Vec::new();
    Encoder::new().row(&layout, &header, row, 20, &mut bytes).expect("encodes");
    let clustering_and_flags = 1 + 1 + 4 + 1 + 3;
    for change in [-1i8, 1] {
        let mut wrong = bytes.clone();
        wrong[clustering_and_flags] = wrong[clustering_and_flags].wrapping_add_signed(change);
        wrong.extend([0; 4]);
        let mut decoder = Decoder::new();
        let result = decoder.unfiltered(&layout, &header, &wrong);
        assert!(
            matches!(result, Err(CodecError { problem: Problem::Size { .. }, .. })),
            "{change}: {result:?}"
        );
    }
}

#[test]
fn columns_that_were_dropped_are_read_and_forgotten() {
    let old = layout();
    let mut builder = RowBuilder::new();
    let mut scratch = RowBuilder::new();
    let mut update = UpdateBuilder::new([7; 16], old.clone(), b"key");
    let rows = [(clustering_of(&[0, 0]), 5), (clustering_of(&[0, 1]), 50)];
    for (at, timestamp) in &rows {
        builder.start_row(at.as_ref());
        builder.cell(CellRef::live(0, None, *timestamp, b"text"));
        builder.cell(CellRef::live(1, None, *timestamp, &[0, 0, 0, 9]));
        builder.complex_deletion(2, Deletion::new(*timestamp, 1000));
        builder.cell(CellRef::live(2, Some(b"k"), timestamp + 1, &[0, 0, 0, 9]));
        update.add(builder.finish_row(&old), &mut scratch);
    }
    let bytes = encode(&Mutation::new(update.finish(&mut scratch)));

    // `t` and `m` are gone; `v` was dropped at 10 and added again.
    let dropped = |name: &str| {
        let column = old.regulars.iter().find(|c| &*c.name == name).expect("a column");
        let (name, ty) = (column.name.clone(), column.ty.clone());
        DroppedColumn { name, ty, is_static: false, dropped_at: 10 }
    };
    let left: Vec<_> =
        old.regulars.iter().filter(|c| matches!(&*c.name, "v" | "s")).cloned().collect();
    let new = Layout::new(old.clustering.to_vec(), vec![], left, false);
    let unknowing = std::sync::Arc::new(new.clone());
    let knowing =
        std::sync::Arc::new(new.with_dropped(vec![dropped("t"), dropped("m"), dropped("v")]));
    let mut reader = Reader::new(&bytes);
    let mutation = MutationDecoder::new()
        .mutation(&mut reader, &|_| Some(knowing.clone()))
        .expect("knows its dropped columns");
    let rows: Vec<_> = mutation.updates()[0].rows.iter().collect();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].cells().collect::<Vec<_>>(), [CellRef::live(0, None, 50, &[0, 0, 0, 9])]);
    let mut reader = Reader::new(&bytes);
    let error = MutationDecoder::new().mutation(&mut reader, &|_| Some(unknowing.clone()));
    assert_eq!(error.expect_err("a column").problem, Problem::UnknownColumn("t".into()));
    let mut reader = Reader::new(&bytes);
    let error = MutationDecoder::new().mutation(&mut reader, &|_| None);
    assert_eq!(error.expect_err("a table").problem, Problem::UnknownTable([7; 16]));
}

/// Seconds are written as 32 bits of difference: `oa` has them unsigned, to 2106; before, what
/// overflowed is known to be invalid.
#[test]
fn times_past_2038() {
    let layout = layout();
    let at = clustering_of(&[1, 2]);
    let (late, ttl) = (3_000_000_000, 100);
    let mut builder = RowBuilder::new();
    builder.start_row(at.as_ref());
    builder.liveness(Liveness::expiring(5, ttl, late));
    builder.cell(CellRef::expiring(0, None, 6, ttl, late + 1, b"x"));
    builder.cell(CellRef::tombstone(1, None, 5, late + 2));
    builder.complex_deletion(2, Deletion::new(4, late + 3));
    let row = builder.finish_row(&layout);
    let stats = EncodingStats { min_timestamp: 4, min_local_deletion_time: 1000, min_ttl: 0 };
    for format in FORMATS {
        let header = Header::of_layout(format, stats, &layout);
        let mut bytes = Vec::new();
        Encoder::new().row(&layout, &header, row, 0, &mut bytes).expect("encodes");
        let mut decoder = Decoder::new();
        let decoded = decoder.unfiltered(&layout, &header, &bytes).expect("decodes");
        let Decoded::Unfiltered { unfiltered: Unfiltered::Row(decoded), .. } = decoded else {
            panic!("{decoded:?}");
        };
        if format.has_unsigned_times() {
            assert_eq!(decoded, row);
            continue;
        }
        assert_eq!(decoded.liveness().map(|l| l.expires_at), Some(INVALID_DELETION_TIME));
        assert!(decoded.cells().all(|cell| cell.local_deletion_time == INVALID_DELETION_TIME));
    }
}

/// Columns `a`, `z` and a set, one of whose names is given.
fn named(name: &str, of_set: &str) -> Arc<Layout> {
    let set = CqlType::Set { element: Arc::new(CqlType::Int), frozen: false };
    let column = |name: &str, ty| ColumnLayout { name: name.into(), ty };
    let columns = vec![
        column("a", CqlType::Int),
        column(name, CqlType::Text),
        column("z", CqlType::Int),
        column("m", set.clone()),
        column(of_set, set),
    ];
    Arc::new(Layout::new(Vec::new(), Vec::new(), columns, false))
}

fn update_by_name(layout: &Arc<Layout>, values: &[(&str, Option<&[u8]>, &[u8])]) -> Mutation {
    let mut row = RowBuilder::new();
    row.start_row(ClusteringRef::EMPTY);
    row.liveness(Liveness::new(5));
    for (name, path, value) in values {
        let column = layout.find(false, name).expect("a column");
        row.cell(CellRef::live(column, *path, 5, value));
    }
    let mut update = UpdateBuilder::new([7; 16], layout.clone(), b"key");
    let mut scratch = RowBuilder::new();
    update.add(row.finish_row(layout), &mut scratch);
    Mutation::new(update.finish(&mut scratch))
}

/// Earlier Helenus had columns that begin beyond ASCII behind all others of their kind. Logs, hints
/// and batches that name them in that order are read; nothing else is.
#[test]
fn columns_in_the_order_of_earlier_helenus_are_read() {
    // names of as many bytes that were in that order
    let (earlier, now) = (named("zz", "zy"), named("\u{e9}", "\u{fc}"));
    let values = |name, of_set| {
        let one: (&str, Option<&[u8]>, &[u8]) = (name, None, b"e acute");
        [
            ("a", None, &[0, 0, 0, 1][..]),
            one,
            ("z", None, &[0, 0, 0, 3]),
            ("m", Some(&[0, 0, 0, 4][..]), b""),
            (of_set, Some(&[0, 0, 0, 5]), b""),
        ]
    };
    for count in 1..=5 {
        let mut bytes = encode(&update_by_name(&earlier, &values("zz", "zy")[5 - count..]));
        for (name, becomes) in [(b"\x02zz", "\x02\u{e9}"), (b"\x02zy", "\x02\u{fc}")] {
            if let Some(at) = bytes.windows(3).position(|at| at == name) {
                bytes[at..at + 3].copy_from_slice(becomes.as_bytes());
            }
        }
        let expected = update_by_name(&now, &values("\u{e9}", "\u{fc}")[5 - count..]);
        let read = |bytes: &[u8]| {
            let of = |_: &[u8; 16]| Some(now.clone());
            MutationDecoder::new().mutation(&mut Reader::new(bytes), &of)
        };
        assert_same(&read(&bytes).expect("read"), &expected).expect("the same");
        // and written as Cassandra does
        let again = encode(&read(&bytes).expect("read"));
        assert_same(&read(&again).expect("read"), &expected).expect("the same");
        assert_eq!(again, encode(&expected));
    }
    let names = |names: &[&str]| {
        let mut bytes = vec![names.len() as u8];
        for name in names {
            bytes.push(name.len() as u8);
            bytes.extend(name.as_bytes());
        }
        ColumnSet::read_names(&now, false, &mut Reader::new(&bytes)).map(|set| set.len())
    };
    assert_eq!(names(&["\u{e9}", "a", "\u{fc}", "m"]), Ok(4));
    for refused in [&["a", "\u{e9}"][..], &["m", "\u{fc}"], &["a", "a"], &["\u{fc}", "z"]] {
        assert_eq!(names(refused), Err(Problem::Columns), "{refused:?}");
    }
}

#[test]
fn a_key_longer_than_an_sstable_can_have_is_refused() {
    let layout = layout();
    for (length, is_read) in [(65_535, true), (65_536, false)] {
        let mut update = PartitionUpdate::empty([7; 16], Arc::clone(&layout), &vec![7; length]);
        update.deletion = Deletion::new(1, 1);
        let bytes = encode(&Mutation::new(update));
        let mut reader = Reader::new(&bytes);
        let read = MutationDecoder::new().mutation(&mut reader, &|_| Some(Arc::clone(&layout)));
        assert_eq!(read.is_ok(), is_read, "{length}");
    }
}
