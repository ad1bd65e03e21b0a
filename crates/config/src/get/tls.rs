//! Roles, rights and certificates.

use std::path::PathBuf;
use std::time::Duration;

use super::{Get, class};
use crate::error::Result;
use crate::key::Value;
use crate::section::{
    Auth, AuthCache, ClientTls, InternodeEncryption, ServerTls, Store, TlsStores,
};

impl Get<'_> {
    pub fn auth(&self) -> Result<Auth> {
        let of = |name: &'static str, served: [&'static str; 2]| {
            let text = self.text(name);
            let text = text.strip_prefix("org.apache.cassandra.auth.").unwrap_or(&text);
            match served.iter().position(|known| *known == text) {
                Some(at) => Ok(at == 1),
                None if text.is_empty() => Ok(false),
                None => self.not_served(name, &served.join(" or ")),
            }
        };
        let authenticates =
            of("authenticator.class_name", ["AllowAllAuthenticator", "PasswordAuthenticator"])?;
        let authorizes =
            of("authorizer.class_name", ["AllowAllAuthorizer", "CassandraAuthorizer"])?;
        if authorizes && !authenticates {
            let why = "it has authorization enabled which requires the authenticator to enable authentication";
            return self.refuse("authorizer.class_name", why);
        }
        let cache = |name: &str| -> Result<AuthCache> {
            let validity = self.duration(&format!("{name}_validity"));
            let update = self.some_base(&format!("{name}_update_interval"));
            Ok(AuthCache {
                validity,
                update_interval: update.filter(|n| *n > 0).map_or(validity, Duration::from_nanos),
                max_entries: self.count(&format!("{name}_cache_max_entries"))? as usize,
            })
        };
        let file = self.some_text("first_superuser_password_file").map(PathBuf::from);
        let first_superuser = match (self.some_text("first_superuser"), file) {
            (Some(name), Some(file)) if !name.is_empty() => Some((name, file)),
            (None, None) => None,
            _ => {
                let why = "set both first_superuser and first_superuser_password_file, and leave \
                           neither empty";
                return self.refuse("first_superuser", why);
            }
        };
        Ok(Auth {
            authenticates,
            authorizes,
            credentials: cache("credentials")?,
            roles: cache("roles")?,
            permissions: cache("permissions")?,
            bcrypt_rounds: self.count("auth_bcrypt_gensalt_log2_rounds")?,
            password_update_min_interval: self.duration("role_password_update_min_interval"),
            first_superuser,
            may_be_open: self.bool("open_without_authentication"),
        })
    }

    /// `client_encryption_options`; none: bytes travel as they are. Other than Cassandra, a key
    /// store that merely lies there switches nothing on.
    pub fn client_tls(&self) -> Result<Option<ClientTls>> {
        let key = |name: &str| format!("client_encryption_options.{name}");
        let is_optional = self.bool(&key("optional"));
        if !is_optional && !self.bool(&key("enabled")) {
            return Ok(None);
        }
        let stores = self.tls("client_encryption_options")?;
        Ok(Some(ClientTls { is_optional, stores }))
    }

    /// `admin_encryption_options`; none: the operator's port has no TLS.
    pub fn admin_tls(&self) -> Result<Option<TlsStores>> {
        match self.bool("admin_encryption_options.enabled") {
            true => Ok(Some(self.tls("admin_encryption_options")?)),
            false => Ok(None),
        }
    }

    pub fn server_tls(&self) -> Result<Option<ServerTls>> {
        let key = |name: &str| format!("server_encryption_options.{name}");
        let encrypts = match self.text(&key("internode_encryption")).as_str() {
            "all" => InternodeEncryption::All,
            "dc" => InternodeEncryption::OtherDataCenters,
            "rack" => InternodeEncryption::OtherRacks,
            _ => InternodeEncryption::None,
        };
        let is_optional = self.bool(&key("optional"));
        let has_port = self.bool(&key("legacy_ssl_storage_port_enabled"));
        if encrypts == InternodeEncryption::None && !is_optional && !has_port {
            return Ok(None);
        }
        let stores = self.tls("server_encryption_options")?;
        let outbound = self.some_text(&key("outbound_keystore"));
        let outbound_keystore = outbound.map(|path| Store::File(path.into()));
        let inline = self.pem(&key("ssl_context_factory"), "outbound_private_key");
        let password = self.some_text(&key("outbound_keystore_password"));
        Ok(Some(ServerTls {
            encrypts,
            is_optional,
            outbound_keystore: inline.map(Store::Inline).or(outbound_keystore),
            // Cassandra has one password for both, unless it is told another
            outbound_keystore_password: self
                .pem(&key("ssl_context_factory"), "outbound_private_key_password")
                .or(password)
                .unwrap_or_else(|| stores.keystore_password.clone()),
            stores,
            verifies_address: self.bool(&key("require_endpoint_verification")),
            tls_port: has_port.then(|| self.port("ssl_storage_port")),
            checks_plain_address: self.bool("internode_plaintext_checks_address"),
        }))
    }

    /// What `PEMBasedSslContextFactory` is given in the configuration itself.
    fn pem(&self, factory: &str, name: &str) -> Option<String> {
        let Value::Map(entries) = self.value(&format!("{factory}.parameters")) else { return None };
        let found = entries.iter().find(|(key, _)| key == name);
        found.and_then(|(_, value)| value.show()).filter(|text| !text.is_empty())
    }

    fn tls(&self, section: &str) -> Result<TlsStores> {
        let key = |name: &str| format!("{section}.{name}");
        let text = |name: &str| self.text(&key(name));
        let factory = text("ssl_context_factory.class_name");
        let mut protocols = self.list(&key("accepted_protocols"));
        protocols.extend(self.some_text(&key("protocol")).filter(|_| protocols.is_empty()));
        let mut tls = TlsStores {
            keystore: Store::File(text("keystore").into()),
            keystore_password: text("keystore_password"),
            truststore: Store::File(text("truststore").into()),
            truststore_password: text("truststore_password"),
            requires_client_auth: self.bool(&key("require_client_auth")),
            takes_expired: section == "client_encryption_options"
                && self.bool("client_certificates_may_expire"),
            protocols,
            cipher_suites: self.list(&key("cipher_suites")),
        };
        match class(&factory, "org.apache.cassandra.security.") {
            "DefaultSslContextFactory" => {}
            "PEMBasedSslContextFactory" => {
                let of = |name: &str| self.pem(&key("ssl_context_factory"), name);
                if let Some(pem) = of("private_key") {
                    tls.keystore = Store::Inline(pem);
                }
                tls.keystore_password = of("private_key_password").unwrap_or(tls.keystore_password);
                if let Some(pem) = of("trusted_certificates") {
                    tls.truststore = Store::Inline(pem);
                }
            }
            _ => {
                let name = key("ssl_context_factory.class_name");
                return self
                    .not_served(&name, "DefaultSslContextFactory or PEMBasedSslContextFactory");
            }
        }
        if !matches!(text("store_type").to_ascii_uppercase().as_str(), "JKS" | "PKCS12" | "PEM") {
            return self.not_served(&key("store_type"), "PKCS12 or PEM");
        }
        Ok(tls)
    }
}
