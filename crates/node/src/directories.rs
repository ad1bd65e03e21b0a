//! The node's directories, made and taken for this process.

use std::collections::BTreeMap;
use std::path::Path;

use config::Config;
use env::{Env, LockGuard};

use crate::error::NodeError;

/// Makes the directories and takes the data directory, until the guard is dropped.
///
/// # Errors
/// If one cannot be made or written, or another process has the data directory.
pub(crate) async fn prepare_directories(
    env: &Env,
    config: &Config,
) -> Result<LockGuard, NodeError> {
    let failed = |path: &Path| {
        let path = path.to_path_buf();
        move |source| NodeError::Directory { path, source }
    };
    let captured = config.cdc.as_ref().map(|cdc| &cdc.directory);
    let all = config.data_file_directories.iter().chain(captured).chain([
        &config.data_dir,
        &config.commitlog_directory,
        &config.hints_directory,
        &config.saved_caches_directory,
    ]);
    let mut above = BTreeMap::new();
    for directory in all {
        env.create_dir_all(directory).await.map_err(failed(directory))?;
        for (distance, parent) in directory.ancestors().skip(1).enumerate() {
            let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
            let nearest = above.entry(parent.to_path_buf()).or_insert(distance);
            *nearest = distance.min(*nearest);
        }
    }
    // Those above may be as new, or left by a start that was killed before it synced them. Where
    // they are older and others' they need not be ours to open.
    for (parent, distance) in above {
        match env.sync_dir(&parent).await {
            Err(_) if distance > 0 => {}
            synced => synced.map_err(failed(&parent))?,
        }
    }
    let lock = config.data_dir.join("lock");
    match env.lock_file(&lock).await {
        Ok(guard) => Ok(guard),
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
            Err(NodeError::Locked { path: config.data_dir.clone() })
        }
        Err(source) => Err(NodeError::Directory { path: lock, source }),
    }
}
