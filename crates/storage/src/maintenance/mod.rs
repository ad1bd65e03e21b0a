//! What the operator asks for, of tables as a whole: to verify, to import, to snapshot, to empty.

mod import;
pub mod snapshot;
mod truncate;
mod verify;

pub use self::import::Import;
pub use self::import::Importer;
pub use self::snapshot::Snapshots;
pub use self::truncate::Truncations;
pub use self::verify::Verifier;
pub(crate) use self::verify::fits;
pub use self::verify::{Depth, Owned, Verify};
