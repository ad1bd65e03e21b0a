//! Where nodetool reaches the node over the network: `admin_address` and `admin_port`.

use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use admin::remote::{Gate, Remote};
use admin::wire::Login;
use admin::{BindError, Refusal};
use cluster::Shard;
use config::Config;
use metrics::Level;
use protocol::{ErrorDetail, ErrorResponse};

use crate::context::Context;
use crate::error::NodeError;
use crate::journal::Journal;
use crate::key_stores::Of;
use crate::node::Node;
use crate::settings::ip;

/// The address to listen on; none where `admin_enabled` is false.
///
/// # Errors
/// If it is none, or would let other machines in without TLS and a login.
pub(crate) fn admin_address(config: &Config) -> Result<Option<SocketAddr>, NodeError> {
    let Some((host, port)) = &config.admin else { return Ok(None) };
    let address = ip("admin_address", host)?;
    let is_guarded = config.admin_tls.is_some() && config.auth.authenticates;
    match address.is_loopback() || is_guarded {
        true => Ok(Some(SocketAddr::new(address, *port))),
        false => Err(NodeError::OpenOperator { address }),
    }
}

/// Listens, if the configuration says so.
///
/// # Errors
/// If the address may not or cannot be listened on.
pub(crate) fn serve_operator(node: &Node, context: &Context) -> Result<Option<Remote>, NodeError> {
    let Context { env, config, registry, journal, .. } = context;
    let Some(address) = admin_address(config)? else { return Ok(None) };
    let gate = Rc::new(Roles { shard: Rc::clone(node.shard()), journal: Rc::clone(journal) });
    let tls = node.encryption().of(Of::Operators).cloned();
    let served = (Rc::clone(node.operations()), gate);
    let remote: Result<_, BindError> = admin::remote::serve(env, address, tls, registry, served);
    let remote = remote?;
    journal.say(Level::Info, format!("Starting listening for nodetool on /{}", remote.address));
    Ok(Some(remote))
}

/// Lets superusers in.
struct Roles {
    shard: Rc<Shard>,
    journal: Rc<Journal>,
}

impl Gate for Roles {
    fn demands_login(&self) -> bool {
        self.shard.auth().authenticates()
    }

    async fn log_in(&self, login: Login, from: IpAddr) -> Result<(), Refusal> {
        let Login { user, password } = login;
        let wrong = format!("Provided username {user} and/or password are incorrect");
        if password.is_empty() {
            // Cassandra hashes it, and finds no such password
            return Err(Refusal::not_let_in("FailedLoginException", wrong));
        }
        let token = format!("\0{user}\0{password}");
        let auth = self.shard.auth();
        let user = auth.log_in(token.as_bytes(), from).await.map_err(|error| refusal(&error))?;
        match auth.is_superuser(&user).await.map_err(|error| refusal(&error))? {
            true => Ok(()),
            // of Cassandra's AuthorizationProxy
            false => Err(Refusal::not_let_in("SecurityException", "Access Denied")),
        }
    }

    fn warn(&self, text: String) {
        self.journal.say(Level::Warn, text);
    }

    fn warn_seldom(&self, text: String) {
        self.journal.say_seldom(Level::Warn, text);
    }
}

/// What nodetool prints of a login that failed (`CassandraLoginModule`).
fn refusal(error: &ErrorResponse) -> Refusal {
    let exception = match error.detail {
        ErrorDetail::BadCredentials => "FailedLoginException",
        _ => "SecurityException",
    };
    Refusal::not_let_in(exception, error.message.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUARDS: [&str; 2] =
        ["authenticator: PasswordAuthenticator\n", "admin_encryption_options: {enabled: true}\n"];

    /// Where a node of such a configuration listens.
    fn listens(address: &str, more: &[&str]) -> Result<Option<SocketAddr>, String> {
        let yaml = format!("admin_enabled: true\nadmin_address: '{address}'\n{}", more.concat());
        let config = Config::from_yaml(&yaml).unwrap();
        admin_address(&config).map_err(|error| error.to_string())
    }

    #[test]
    fn beyond_loopback_the_port_has_tls_and_logins() {
        let at = |address: &str| Ok(Some(format!("{address}:7199").parse().unwrap()));
        assert_eq!(listens("127.0.0.1", &[]), at("127.0.0.1"));
        assert_eq!(listens("::1", &[]), at("[::1]"));
        for address in ["10.0.0.1", "0.0.0.0", "::", "::ffff:127.0.0.1"] {
            for more in [&[][..], &GUARDS[..1], &GUARDS[1..]] {
                let error = listens(address, more).unwrap_err();
                assert!(error.starts_with(&format!("admin_address {address} is not loopback")));
            }
            assert!(listens(address, &GUARDS).is_ok());
        }
        let off = Config::from_yaml("admin_address: 10.0.0.1").unwrap();
        assert!(admin_address(&off).unwrap().is_none());
    }
}
