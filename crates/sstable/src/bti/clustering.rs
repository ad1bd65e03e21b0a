//! Clusterings and bounds as keys of the tries in `Rows.db`
//! (`ClusteringComparator.asByteComparable`).

use rows::{BoundKind, BoundRef, Layout};
use types::byte_comparable::{
    Encoded, GT_NEXT_COMPONENT, LT_NEXT_COMPONENT, NEXT_COMPONENT, NEXT_COMPONENT_EMPTY,
    NEXT_COMPONENT_EMPTY_REVERSED, NEXT_COMPONENT_NULL, TERMINATOR,
};

/// Bytes that compare as the bound or clustering does among those of its table. `None` if a value
/// has no such form.
pub fn bound_bytes(layout: &Layout, bound: BoundRef<'_>) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for (column, value) in layout.clustering.iter().zip(bound.values.iter()) {
        let Some(value) = value else {
            out.push(NEXT_COMPONENT_NULL);
            continue;
        };
        out.push(NEXT_COMPONENT);
        let start = out.len();
        match column.ty.byte_comparable(value, &mut out)? {
            Encoded::Bytes if column.reversed => {
                out.iter_mut().skip(start).for_each(|byte| *byte = !*byte);
            }
            Encoded::Bytes => {}
            Encoded::Empty => {
                let empty = match column.reversed {
                    true => NEXT_COMPONENT_EMPTY_REVERSED,
                    false => NEXT_COMPONENT_EMPTY,
                };
                out.truncate(start - 1);
                out.push(empty);
            }
        }
    }
    out.push(match bound.kind {
        BoundKind::Clustering => TERMINATOR,
        BoundKind::ExclEnd | BoundKind::InclStart | BoundKind::ExclEndInclStart => {
            LT_NEXT_COMPONENT
        }
        _ => GT_NEXT_COMPONENT,
    });
    Some(out)
}
