//! TLS on a shard: what clients, other nodes and nodetool are offered, taken anew whenever the key
//! stores change.
//!
//! The first shard has a helper thread read the stores, and gives every shard the certificates.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use config::Config;
use env::sync::Semaphore;
use env::{Class, Env};
use metrics::{Counter, Level, Name, Unit};
use storage::shards::{Remote, Stopping};
use tls::{Certificates, Tls};

use crate::context::Context;
use crate::first_certificates::{FirstCertificates, Read};
use crate::journal::Journal;
use crate::key_stores::{Contents, KeyStores, Of};

/// How often the stores are looked at.
const LOOK: Duration = Duration::from_secs(10);

/// The stores of a section.
struct Kept {
    of: Of,
    /// They are looked at one after the other.
    turn: Semaphore,
    looks: RefCell<Looks>,
}

/// What was seen of stores.
#[derive(Clone)]
struct Looks {
    /// What is served.
    served: Contents,
    /// What was found last and cannot be used, and what was said of it.
    refused: Option<(Result<Contents, String>, String)>,
}

impl From<Contents> for Looks {
    fn from(served: Contents) -> Self {
        Self { served, refused: None }
    }
}

/// TLS on one shard.
pub(crate) struct Encryption {
    env: Env,
    config: Arc<Config>,
    others: Remote<Encryption>,
    journal: Rc<Journal>,
    clients: Option<Tls>,
    nodes: Option<Tls>,
    operators: Option<Tls>,
    /// The stores that are looked at.
    kept: RefCell<Vec<Rc<Kept>>>,
    /// Stores that were read anew.
    read: Counter,
    /// Stores that changed, and that nothing can be served with.
    refused: Counter,
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
            operators: tls(Of::Operators, &first.operators),
            kept: RefCell::default(),
            read: count("CertificatesRead", "Key stores reloaded after a change."),
            refused: count("CertificatesRefused", "Key stores that changed and could not be read."),
        })
    }

    /// What such connections are offered, if anything is.
    pub fn of(&self, of: Of) -> Option<&Tls> {
        match of {
            Of::Clients => self.clients.as_ref(),
            Of::Nodes => self.nodes.as_ref(),
            Of::Operators => self.operators.as_ref(),
        }
    }

    /// Looks at the stores from now on, which held `first`; on the first shard.
    pub fn keep(self: &Rc<Self>, first: FirstCertificates) {
        let FirstCertificates { clients, nodes, operators } = first;
        let all = [(Of::Clients, clients), (Of::Nodes, nodes), (Of::Operators, operators)];
        for (of, read) in all {
            if let Some(Read { contents, .. }) = read {
                let kept = Rc::new(Kept {
                    of,
                    turn: Semaphore::new(1),
                    looks: RefCell::new(contents.into()),
                });
                self.kept.borrow_mut().push(Rc::clone(&kept));
                let keeper = Rc::clone(self);
                self.env.spawn(Class::Background, async move {
                    loop {
                        keeper.env.sleep(LOOK).await;
                        // why they cannot be used is said already
                        let _ = keeper.look_at(&kept).await;
                    }
                });
            }
        }
    }

    /// Looks at all stores now; on the first shard.
    ///
    /// # Errors
    /// If some cannot be used: those that were served before still are.
    pub async fn look(&self) -> Result<(), String> {
        let all: Vec<_> = self.kept.borrow().clone();
        let mut refused = Vec::new();
        for kept in all {
            refused.extend(self.look_at(&kept).await.err());
        }
        match refused.is_empty() {
            true => Ok(()),
            false => Err(refused.join("; ")),
        }
    }

    /// Takes the stores of a section anew if they have changed; those that make no sense leave all
    /// as it was. The error is the same for as long as they are.
    async fn look_at(&self, kept: &Kept) -> Result<(), String> {
        let Some(stores) = KeyStores::of(&self.config, kept.of) else { return Ok(()) };
        let _turn = kept.turn.acquire(1).await;
        let found = stores.read(&self.env).await;
        let Looks { served, refused } = kept.looks.borrow().clone();
        if found.as_ref() == Ok(&served) {
            kept.looks.borrow_mut().refused = None;
            return Ok(());
        }
        if let Some((_, text)) = refused.filter(|(before, _)| *before == found) {
            return Err(text);
        }
        let why = match &found {
            Err(why) => why.clone(),
            Ok(contents) => match stores.certificates(&self.env, contents.clone()).await {
                Ok(made) => {
                    if self.set_on_all(kept.of, &made).await.is_ok() {
                        self.read.inc();
                        *kept.looks.borrow_mut() = contents.clone().into();
                    }
                    return Ok(());
                }
                Err(why) => format!("{}: {why}", stores.changed_files(&served, contents)),
            },
        };
        self.refused.inc();
        let section = kept.of.section();
        let text = format!(
            "cannot use the changed key stores of {section}, still using the previous ones: {why}"
        );
        self.journal.say(Level::Warn, text.clone());
        kept.looks.borrow_mut().refused = Some((found, text.clone()));
        Err(text)
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
