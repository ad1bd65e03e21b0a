//! The packed forms: what a builder is given, a view gives back.

use rows::*;
use std::cmp::Ordering;
use types::CqlType;

fn layout() -> Layout {
    let column = |name: &str, ty| ColumnLayout { name: name.into(), ty };
    let map = CqlType::Map { key: CqlType::Text.into(), value: CqlType::Int.into(), frozen: false };
    Layout::new(
        vec![
            ClusteringColumn { ty: CqlType::Text, reversed: false },
            ClusteringColumn { ty: CqlType::Text, reversed: true },
        ],
        vec![column("s", CqlType::Int)],
        vec![column("a", map), column("v", CqlType::Int), column("d", CqlType::Text)],
        false,
    )
}

#[test]
fn simple_columns_come_before_complex_ones() {
    let layout = layout();
    let names: Vec<_> = layout.regulars.iter().map(|c| &*c.name).collect();
    assert_eq!(names, ["d", "v", "a"]);
    assert_eq!(layout.find(false, "a"), Some(2));
    assert_eq!(layout.find(false, "v"), Some(1));
    assert_eq!(layout.find(false, "s"), None);
    assert_eq!(layout.find(true, "s"), Some(0));
}

#[test]
fn cells_come_back_sorted_and_resolved() {
    let layout = layout();
    let clustering = Clustering::new([Some(&b"x"[..]), None]);
    let mut builder = RowBuilder::new();
    builder.start_row(clustering.as_ref());
    builder.liveness(Liveness::expiring(10, 100, 1100));
    builder.cell(CellRef::live(2, Some(b"k2"), 10, b"2222"));
    builder.cell(CellRef::live(2, Some(b"k1"), 10, b"1111"));
    builder.cell(CellRef::live(2, Some(b"k1"), 11, b"new1"));
    builder.cell(CellRef::live(2, Some(b"old"), 3, b"gone"));
    builder.complex_deletion(2, Deletion::new(9, 1000));
    builder.cell(CellRef::expiring(0, None, 10, 100, 1100, b"text"));
    builder.cell(CellRef::tombstone(1, None, 12, 1001));
    let row = builder.finish_row(&layout);
    assert_eq!(row.clustering(), clustering.as_ref());
    assert_eq!(row.clustering().iter().collect::<Vec<_>>(), [Some(&b"x"[..]), None]);
    assert_eq!(row.liveness(), Some(Liveness::expiring(10, 100, 1100)));
    assert_eq!(
        row.cells().collect::<Vec<_>>(),
        [
            CellRef::expiring(0, None, 10, 100, 1100, b"text"),
            CellRef::tombstone(1, None, 12, 1001),
            CellRef::complex_deletion(2, Deletion::new(9, 1000)),
            CellRef::live(2, Some(b"k1"), 11, b"new1"),
            CellRef::live(2, Some(b"k2"), 10, b"2222"),
        ]
    );
    assert!(row.has_live_data(1099, true));
    assert!(!row.has_live_data(1100, true));
    assert!(row.has_live_data(1100, false));
}

#[test]
fn a_row_deletion_leaves_out_what_it_deletes() {
    let layout = layout();
    let mut builder = RowBuilder::new();
    builder.start_row(ClusteringRef::EMPTY);
    builder.liveness(Liveness::new(5));
    builder.deletion(Deletion::new(5, 100));
    builder.cell(CellRef::live(0, None, 5, b"old"));
    builder.cell(CellRef::live(1, None, 6, b"new1"));
    let row = builder.finish_row(&layout);
    assert_eq!(row.liveness(), None);
    assert_eq!(row.deletion(), Deletion::new(5, 100));
    assert_eq!(row.cells().collect::<Vec<_>>(), [CellRef::live(1, None, 6, b"new1")]);
    builder.start_static();
    assert!(builder.finish_row(&layout).is_empty());
}

#[test]
fn bounds_stand_where_cassandra_puts_them() {
    let layout = layout();
    let row = Clustering::new([Some(&b"b"[..]), Some(b"x")]);
    let prefix = Clustering::new([Some(&b"b"[..])]);
    let bound = |kind| BoundRef::new(kind, prefix.as_ref());
    for (kind, expected) in [
        (BoundKind::InclStart, Ordering::Less),
        (BoundKind::ExclStart, Ordering::Greater),
        (BoundKind::InclEnd, Ordering::Greater),
        (BoundKind::ExclEnd, Ordering::Less),
    ] {
        assert_eq!(compare(&layout, bound(kind), &row), expected, "{kind:?}");
        assert_eq!(compare(&layout, &row, bound(kind)), expected.reverse(), "{kind:?}");
    }
    let close = bound(BoundKind::ExclEnd);
    assert_eq!(compare(&layout, close, close.invert()), Ordering::Equal);
    assert_eq!(compare(&layout, BoundRef::BOTTOM, BoundRef::TOP), Ordering::Less);
    let later = Clustering::new([Some(&b"b"[..]), Some(b"a")]);
    assert_eq!(compare_clusterings(&layout, row.as_ref(), later.as_ref()), Ordering::Less);
    let null = Clustering::new([Some(&b"b"[..]), None]);
    assert_eq!(compare_clusterings(&layout, null.as_ref(), row.as_ref()), Ordering::Less);
}

#[test]
fn markers_come_back() {
    let prefix = Clustering::new([Some(&b"b"[..])]);
    let (one, two) = (Deletion::new(1, 10), Deletion::new(2, 20));
    for marker in [
        MarkerRef::bound(BoundRef::new(BoundKind::ExclStart, prefix.as_ref()), one),
        MarkerRef::bound(BoundRef::TOP, one),
        MarkerRef::boundary(BoundRef::new(BoundKind::InclEndExclStart, prefix.as_ref()), one, two),
    ] {
        let mut packed = Vec::new();
        marker.pack(&mut packed);
        assert_eq!(Unfiltered::from_packed(&packed), Unfiltered::Marker(marker));
    }
}

#[test]
fn a_column_map_translates_and_drops() {
    let from = layout();
    let column = |name: &str, ty| ColumnLayout { name: name.into(), ty };
    let to = Layout::new(
        from.clustering.to_vec(),
        vec![],
        vec![column("b", CqlType::Int), column("d", CqlType::Text), column("v", CqlType::Int)],
        false,
    )
    .with_dropped(vec![DroppedColumn {
        name: "v".into(),
        ty: CqlType::Int,
        is_static: false,
        dropped_at: 5,
    }]);
    let map = ColumnMap::new(&from, &to);
    assert!(!map.is_identity());
    assert!(ColumnMap::new(&from, &from).is_identity());
    let mut builder = RowBuilder::new();
    builder.start_row(ClusteringRef::EMPTY);
    builder.cell(CellRef::live(0, None, 1, b"d"));
    builder.cell(CellRef::live(1, None, 5, b"v"));
    builder.cell(CellRef::live(2, Some(b"k"), 9, b"a"));
    let row = builder.finish_row(&from);
    let mut out = RowBuilder::new();
    let mapped = map.apply(row, &to, &mut out).expect("a cell is left");
    assert_eq!(mapped.cells().collect::<Vec<_>>(), [CellRef::live(1, None, 1, b"d")]);
}
