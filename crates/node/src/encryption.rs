//! TLS on a shard: what clients and other nodes are offered, taken anew whenever the key stores
//! change.
//!
//! The first shard has a helper thread read the stores, and gives every shard the certificates.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use config::Config;
use env::sync::Notify;
use env::{Class, Env};
use metrics::{Counter, Level, Name, Unit};
use storage::shards::{Remote, Stopping};
use tls::{Certificates, Tls};

use crate::context::Context;
use crate::first_certificates::{FirstCertificates, Read};
use crate::journal::Journal;
use crate::key_stores::{Contents, KeyStores, Of};
use crate::race::first;

/// How often the stores are looked at.
const LOOK: Duration = Duration::from_secs(10);

/// TLS on one shard.
pub(crate) struct Encryption {
    env: Env,
    config: Arc<Config>,
    others: Remote<Encryption>,
    journal: Rc<Journal>,
    clients: Option<Tls>,
    nodes: Option<Tls>,
    /// Stores that were read anew.
    read: Counter,
    /// Stores that changed, and that nothing can be served with.
    refused: Counter,
    /// The operator wants them looked at now.
    wanted: Notify,
}

impl Encryption {
    pub fn new(context: &Context, others: Remote<Self>, first: &FirstCertificates) -> Rc<Self> {
        let Context { env, config, registry, journal, .. } = context;
        let count = |name, help| registry.counter(Name::new("Client", name), Unit::Count, help);
        let tls = |of, read: &Option<Read>| {
            let is_optional = KeyStores::of(config, of)?.is_optional();
            Some(Tls::new(&read.as_ref()?.certificates, is_optional))
        };
        Rc::new(Self {
            env: env.clone(),
            config: Arc::clone(config),
            others,
            journal: Rc::clone(journal),
            clients: tls(Of::Clients, &first.clients),
            nodes: tls(Of::Nodes, &first.nodes),
            read: count("CertificatesRead", "Key stores reloaded after a change."),
            refused: count("CertificatesRefused", "Key stores that changed and could not be read."),
            wanted: Notify::new(),
        })
    }

    /// What such connections are offered, if anything is.
    pub fn of(&self, of: Of) -> Option<&Tls> {
        match of {
            Of::Clients => self.clients.as_ref(),
            Of::Nodes => self.nodes.as_ref(),
        }
    }

    /// Looks at the stores now, rather than in a while; on the first shard.
    pub fn look_now(&self) {
        self.wanted.notify_all();
    }

    /// Looks at the stores from now on, which held `first`; on the first shard.
    pub fn keep(self: &Rc<Self>, first: FirstCertificates) {
        for (of, read) in [(Of::Clients, first.clients), (Of::Nodes, first.nodes)] {
            if let Some(Read { contents, .. }) = read {
                let keeper = Rc::clone(self);
                let keeping = async move { keeper.keep_section(of, contents).await };
                self.env.spawn(Class::Background, keeping);
            }
        }
    }

    /// Takes the stores anew whenever they change; those that make no sense leave all as it was.
    async fn keep_section(&self, of: Of, mut served: Contents) {
        let Some(stores) = KeyStores::of(&self.config, of) else { return };
        let mut refused = None;
        loop {
            first(self.env.sleep(LOOK), self.wanted.notified()).await;
            let found = stores.read(&self.env).await;
            if found.as_ref() == Ok(&served) {
                refused = None;
                continue;
            }
            if refused.as_ref() == Some(&found) {
                continue;
            }
            let why = match &found {
                Err(why) => why.clone(),
                Ok(contents) => match stores.certificates(&self.env, contents.clone()).await {
                    Ok(made) => {
                        if self.set_on_all(of, &made).await.is_err() {
                            return;
                        }
                        self.read.inc();
                        (served, refused) = (contents.clone(), None);
                        continue;
                    }
                    Err(why) => format!("{}: {why}", stores.changed_files(&served, contents)),
                },
            };
            self.refused.inc();
            let section = of.section();
            let text = format!(
                "cannot use the changed key stores of {section}, still using the previous ones: \
                 {why}"
            );
            self.journal.say(Level::Warn, text);
            refused = Some(found);
        }
    }

    async fn set_on_all(&self, of: Of, certificates: &Certificates) -> Result<(), Stopping> {
        for shard in 0..self.others.count() {
            let certificates = certificates.clone();
            let set = move |there: &Rc<Self>| {
                if let Some(tls) = there.of(of) {
                    tls.set(&certificates);
                }
            };
            self.others.call(shard, set).await?;
        }
        Ok(())
    }
}
