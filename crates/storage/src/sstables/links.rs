//! Hard links to an SSTable's files.

use std::path::Path;

use env::Env;
use sstable::descriptor::Descriptor;

use crate::error::StorageError;

/// Links the files of an SSTable into another directory. The names are not durable before that is
/// synced.
pub(crate) async fn link_sstable(
    env: &Env,
    from: &Path,
    descriptor: &Descriptor,
    to: &Path,
) -> Result<(), StorageError> {
    let failed = |e| StorageError::io("cannot link the files of", from, e);
    for entry in env.read_dir(from).await.map_err(failed)? {
        let ours = Descriptor::parse(&entry.name).is_ok_and(|(of, _)| of == *descriptor);
        if ours && !entry.is_dir {
            env.hard_link(from.join(&entry.name), to.join(&entry.name)).await.map_err(failed)?;
        }
    }
    Ok(())
}
