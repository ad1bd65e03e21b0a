//! The disk-fault table, proven cell by cell; `docs/faults.md` is what it prints.

use std::path::Path;

use sim::faults::report;

#[test]
#[allow(clippy::disallowed_methods, reason = "a document of the project")]
fn the_table_of_faults_is_as_it_was_committed() {
    let (page, problems) = report();
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/faults.md");
    let committed = std::fs::read_to_string(&place).unwrap_or_default();
    if page != committed {
        let found = Path::new(env!("CARGO_TARGET_TMPDIR")).join("faults.md");
        std::fs::write(&found, &page).unwrap();
        panic!(
            "docs/faults.md is not what was found, which is in {}\n{problems:#?}",
            found.display()
        );
    }
    assert!(problems.is_empty(), "{problems:#?}");
}
