//! What the key stores hold when the node opens.

use config::Config;
use env::Env;
use tls::Certificates;

use crate::error::NodeError;
use crate::key_stores::{Contents, KeyStores, Of};

/// What the stores of a section held at the start, and what was made of it.
#[derive(Clone)]
pub(crate) struct Read {
    pub contents: Contents,
    pub certificates: Certificates,
}

/// What all shards serve and dial with when the node opens.
#[derive(Clone, Default)]
pub(crate) struct FirstCertificates {
    pub clients: Option<Read>,
    pub nodes: Option<Read>,
    pub operators: Option<Read>,
}

impl FirstCertificates {
    /// Reads the stores that are configured.
    ///
    /// # Errors
    /// If one of them cannot be read or used.
    pub async fn read(env: &Env, config: &Config) -> Result<Self, NodeError> {
        let read = async |of: Of| -> Result<_, NodeError> {
            let Some(stores) = KeyStores::of(config, of) else { return Ok(None) };
            let failed = |why| NodeError::Tls { section: of.section(), why };
            let contents = stores.read(env).await.map_err(failed)?;
            let certificates = stores.certificates(env, contents.clone()).await.map_err(failed)?;
            Ok(Some(Read { contents, certificates }))
        };
        Ok(Self {
            nodes: read(Of::Nodes).await?,
            clients: read(Of::Clients).await?,
            operators: read(Of::Operators).await?,
        })
    }
}
