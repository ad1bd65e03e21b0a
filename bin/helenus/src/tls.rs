//! TLS of clients: the stores that the configuration names, read at the start and whenever they change.

use std::rc::Rc;
use std::time::Duration;

use config::{ClientTls, Store};
use env::{Class, Env};
use server::{Certificates, Tls, TlsOptions};

use crate::error::NodeError;
use crate::node::Node;

/// How often the stores are looked at.
const LOOK: Duration = Duration::from_secs(10);
/// Bytes that a store may have.
const MAX_STORE: u64 = 1 << 20;

/// The contents of the stores.
#[derive(Clone, PartialEq, Eq)]
struct Stores {
    keystore: Vec<u8>,
    truststore: Option<Vec<u8>>,
}

async fn read(env: &Env, store: &Store) -> Result<Vec<u8>, NodeError> {
    match store {
        Store::Inline(pem) => Ok(pem.clone().into_bytes()),
        Store::File(path) => {
            let read = env.read_file(path, MAX_STORE).await;
            read.map_err(|error| NodeError::Tls(format!("{}: {error}", path.display())))
        }
    }
}

async fn read_all(env: &Env, tls: &ClientTls) -> Result<Stores, NodeError> {
    let keystore = read(env, &tls.keystore).await?;
    let truststore = match tls.requires_client_auth {
        true => Some(read(env, &tls.truststore).await?),
        false => None,
    };
    Ok(Stores { keystore, truststore })
}

async fn certificates(
    env: &Env,
    tls: &ClientTls,
    stores: Stores,
) -> Result<Certificates, NodeError> {
    let options = TlsOptions {
        keystore: stores.keystore,
        keystore_password: tls.keystore_password.clone(),
        truststore: stores.truststore,
        truststore_password: tls.truststore_password.clone(),
        protocols: tls.protocols.clone(),
        cipher_suites: tls.cipher_suites.clone(),
    };
    let made = env.helper(move || Certificates::new(&options)).await;
    made.map_err(|error| NodeError::Tls(error.to_string()))
}

impl Node {
    /// Reads the stores, gives every shard what is in them, and keeps looking; on the first shard, before any serves.
    pub(crate) async fn start_tls(self: &Rc<Self>) -> Result<(), NodeError> {
        let Some(tls) = self.config().client_tls.clone() else { return Ok(()) };
        let stores = read_all(self.env(), &tls).await?;
        let made = certificates(self.env(), &tls, stores.clone()).await?;
        self.set_certificates(&made, tls.is_optional).await?;
        let node = Rc::clone(self);
        self.env().spawn(Class::Background, async move { node.keep_tls(tls, stores).await });
        Ok(())
    }

    async fn set_certificates(
        self: &Rc<Self>,
        certificates: &Certificates,
        is_optional: bool,
    ) -> Result<(), NodeError> {
        for shard in 0..self.env().shards() {
            let certificates = certificates.clone();
            let set = move |node: &Rc<Self>| match node.tls() {
                Some(tls) => tls.set(&certificates),
                None => node.set_tls(Tls::new(&certificates, is_optional)),
            };
            self.on_shard(shard, set).await?;
        }
        Ok(())
    }

    /// Takes the stores anew whenever they change; those that make no sense leave all as it was.
    async fn keep_tls(self: &Rc<Self>, tls: ClientTls, mut served: Stores) {
        let mut refused = None;
        loop {
            self.env().sleep(LOOK).await;
            let Ok(stores) = read_all(self.env(), &tls).await else { continue };
            if stores == served || refused.as_ref() == Some(&stores) {
                continue;
            }
            match certificates(self.env(), &tls, stores.clone()).await {
                Ok(made) => {
                    if self.set_certificates(&made, tls.is_optional).await.is_err() {
                        return;
                    }
                    self.count_certificates(true);
                    served = stores;
                }
                Err(_) => {
                    self.count_certificates(false);
                    refused = Some(stores);
                }
            }
        }
    }
}
