//! Before the log is replayed: segments that are there are archived, and archived ones restored, as
//! `commitlog_archiving.properties` says (`CommitLogArchiver`, `CommitLog.recoverSegmentsOnDisk`).

use std::path::{Path, PathBuf};

use env::{File, OpenOptions};

use crate::commitlog::{
    Archiving, HeaderError, file_name_of, parse_file_name, read_header, segment_files,
};
use crate::engine::Engine;
use crate::error::StorageError;

/// Bytes in which a segment's header is found.
const HEADER_BYTES: u64 = 128 << 10;

/// Archives the log's segments and restores archived ones. What goes wrong with the first was
/// perhaps archived before: it is told of, a line each. To be done before the first replay.
///
/// # Errors
/// If a segment cannot be restored.
pub(super) async fn restore_log(engine: &Engine) -> Result<Vec<String>, StorageError> {
    let (env, archiving) = (engine.env(), &engine.options.log.archiving);
    let directory = &engine.options.commitlog_directory;
    let mut notes = Vec::new();
    if let Some(command) = &archiving.archive_command {
        for segment in segment_files(env, directory).await? {
            let words = Archiving::archive_words(command, &segment.path);
            if let Err(error) = env.run_program(words).await {
                let path = segment.path.display();
                notes.push(format!(
                    "Archiving file {path} failed, file may have already been archived: {error}"
                ));
            }
        }
    }
    for from in &archiving.restore_directories {
        let failed = |e| StorageError::io("cannot list", from, e);
        env.create_dir_all(from).await.map_err(failed)?;
        let mut entries = env.read_dir(from).await.map_err(failed)?;
        entries.retain(|entry| !entry.is_dir);
        entries.sort();
        for entry in entries {
            restore(engine, &from.join(entry.name), directory).await?;
        }
    }
    if !archiving.restore_directories.is_empty() {
        let synced = env.sync_dir(directory).await;
        synced.map_err(|e| StorageError::io("cannot sync", directory, e))?;
    }
    Ok(notes)
}

/// Restores a segment, unless it is there already.
async fn restore(engine: &Engine, from: &Path, directory: &Path) -> Result<(), StorageError> {
    let env = engine.env();
    let to = directory.join(name_of(engine, from).await?);
    let failed = |e| StorageError::io("cannot restore", from, e);
    if env.exists(&to).await.map_err(failed)? {
        return Ok(());
    }
    let words = engine.options.log.archiving.restore_words(from, &to);
    env.run_program(words).await.map_err(failed)?;
    env.mark("commitlog.restored");
    Ok(())
}

/// The name that a segment has in the log, from its header, which its own name must not
/// contradict.
async fn name_of(engine: &Engine, from: &Path) -> Result<PathBuf, StorageError> {
    let failed = |e| StorageError::io("cannot read", from, e);
    let file = File::open(engine.env(), from, OpenOptions::READ).await.map_err(failed)?;
    let length = file.len().await.map_err(failed)?.min(HEADER_BYTES);
    let (read, bytes) = file.read_exact_at(Vec::new(), 0, length as usize).await;
    read.map_err(failed)?;
    let refuse = |what: &str| {
        let what = format!("Cannot safely construct descriptor for segment, {what}");
        StorageError::corrupt(from, what)
    };
    let name = from.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let named = parse_file_name(&name);
    match (read_header(&bytes), named) {
        (Ok(header), Some(named)) if named != (header.version, header.id) => {
            Err(refuse("as name and header descriptors do not match"))
        }
        (Ok(header), _) => Ok(file_name_of(header.version, header.id).into()),
        (Err(HeaderError::Truncated | HeaderError::Checksum), None) => {
            Err(refuse("either from its name or its header"))
        }
        (Err(HeaderError::Truncated | HeaderError::Checksum), Some(_)) => Err(refuse(
            "as name descriptor implies a version that should contain a header descriptor, but \
             that descriptor could not be read",
        )),
        (Err(error), _) => Err(StorageError::corrupt(from, error)),
    }
}
