//! The first role of a node that has none.

use cluster::Shard;
use config::Config;
use env::Env;

use crate::error::NodeError;

/// Bytes that a file with a password may have.
const PASSWORD_BYTES_MAX: u64 = 4096;

/// Makes the first superuser, where the operator wants one and there is no role. What the operator
/// should know of it, too: where nobody can log in, for one.
///
/// # Errors
/// If the file with the password, or a role, cannot be read or written.
pub(crate) async fn prepare_roles(
    env: &Env,
    config: &Config,
    shard: &Shard,
) -> Result<Option<String>, NodeError> {
    let auth = &config.auth;
    if !auth.authenticates {
        return Ok(None);
    }
    let failed = |error: protocol::ErrorResponse| NodeError::FirstSuperuser(error.message);
    if shard.auth().has_roles().await.map_err(failed)? {
        return Ok(None);
    }
    let Some((name, path)) = &auth.first_superuser else {
        return Ok(Some(
            "no client can log in, as no role exists: set first_superuser and \
             first_superuser_password_file, and restart the node"
                .to_owned(),
        ));
    };
    let bad = |why: String| NodeError::FirstPassword { path: path.clone(), why };
    let read = env.read_file(path, PASSWORD_BYTES_MAX).await;
    let bytes = read.map_err(|error| bad(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| bad("it is not UTF-8".to_owned()))?;
    let password = text.trim_end_matches(['\n', '\r']);
    if password.is_empty() {
        return Err(bad("it is empty".to_owned()));
    }
    let is_made = shard.auth().make_first_superuser(name, password).await.map_err(failed)?;
    Ok(is_made.then(|| format!("created the superuser {name}")))
}
