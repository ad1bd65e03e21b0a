//! Roles, users and identities.

use super::{K, Parser, Res};
use crate::ast::{
    Access, AddIdentity, AlterRole, CreateRole, DropIdentity, DropRole, RoleOptions, RoleStatement,
    Secret, Statement,
};
use crate::lexer::Kind;

const NO_QUOTED_USER: &str =
    "Quoted strings are are not supported for user names and USER is deprecated, please use ROLE";
const NO_QUOTED_IDENTITY: &str = "Quoted strings are are not supported for identity";

pub(super) fn role(statement: RoleStatement) -> Statement {
    Statement::Role(Box::new(statement))
}

impl Parser<'_> {
    pub(super) fn create_role(&mut self) -> Res<Statement> {
        self.expect_words(&[K::Create, K::Role])?;
        let if_not_exists = self.if_not_exists()?;
        let name = self.role_name()?;
        let mut options = self.role_options()?;
        options.login.get_or_insert(false);
        options.superuser.get_or_insert(false);
        Ok(role(RoleStatement::Create(CreateRole { name, if_not_exists, options })))
    }

    pub(super) fn alter_role(&mut self) -> Res<Statement> {
        self.expect_words(&[K::Alter, K::Role])?;
        let if_exists = self.if_exists()?;
        let name = self.role_name()?;
        let options = self.role_options()?;
        Ok(role(RoleStatement::Alter(AlterRole { name, if_exists, options })))
    }

    pub(super) fn drop_role(&mut self) -> Res<Statement> {
        self.expect_words(&[K::Drop, K::Role])?;
        let if_exists = self.if_exists()?;
        Ok(role(RoleStatement::Drop(DropRole { name: self.role_name()?, if_exists })))
    }

    /// `WITH option AND ...`, if given.
    fn role_options(&mut self) -> Res<RoleOptions> {
        let mut options = RoleOptions::default();
        if self.eat_word(K::With) {
            self.and_list(|p| p.role_option(&mut options))?;
        }
        if options.password.is_some() && options.hashed_password.is_some() {
            return self.rule(
                "Options 'password' and 'hashed password' are mutually exclusive".to_owned(),
            );
        }
        Ok(options)
    }

    fn role_option(&mut self, options: &mut RoleOptions) -> Res<()> {
        let Kind::Keyword(word) = self.kind() else { return self.no_viable() };
        self.skip();
        match word {
            K::Password => {
                self.expect(Kind::Equal, "'='")?;
                let password = Secret(self.string()?);
                self.set_once(&mut options.password, password, "PASSWORD")
            }
            K::Hashed => {
                self.expect_word(K::Password)?;
                self.expect(Kind::Equal, "'='")?;
                let hash = Secret(self.string()?);
                self.set_once(&mut options.hashed_password, hash, "HASHED_PASSWORD")
            }
            K::Options => {
                self.expect(Kind::Equal, "'='")?;
                let map = self.property_map()?;
                self.set_once(&mut options.custom, map, "OPTIONS")
            }
            K::Superuser => {
                let value = self.boolean_option()?;
                self.set_once(&mut options.superuser, value, "SUPERUSER")
            }
            K::Login => {
                let value = self.boolean_option()?;
                self.set_once(&mut options.login, value, "LOGIN")
            }
            K::Access => self.access(options),
            _ => {
                self.at -= 1;
                self.no_viable()
            }
        }
    }

    fn set_once<T>(&self, slot: &mut Option<T>, value: T, name: &str) -> Res<()> {
        if slot.is_some() {
            return self.rule(format!("Multiple definition for property '{name}'"));
        }
        *slot = Some(value);
        Ok(())
    }

    fn boolean_option(&mut self) -> Res<bool> {
        self.expect(Kind::Equal, "'='")?;
        if self.kind() != Kind::Boolean {
            return self.mismatch("BOOLEAN");
        }
        let value = self.source().eq_ignore_ascii_case("true");
        self.skip();
        Ok(value)
    }

    /// `ACCESS TO ..DATACENTERS ..` or `ACCESS FROM ..CIDRS ..`.
    fn access(&mut self, options: &mut RoleOptions) -> Res<()> {
        if self.eat_word(K::To) {
            self.access_list(K::Datacenters, &mut options.datacenters, "DCs have already been set")
        } else if self.eat_word(K::From) {
            let refusal = "CIDR Groups have already been set";
            self.access_list(K::Cidrs, &mut options.cidr_groups, refusal)
        } else {
            self.no_viable()
        }
    }

    /// The list may be given in pieces; `ALL` and a list exclude each other.
    fn access_list(&mut self, what: K, slot: &mut Option<Access>, refusal: &str) -> Res<()> {
        if self.eat_word(K::All) {
            self.expect_word(what)?;
            if matches!(slot, Some(Access::Only(_))) {
                return self.failed_argument(refusal);
            }
            *slot = Some(Access::All);
            return Ok(());
        }
        self.expect_word(what)?;
        self.expect(Kind::OpenBrace, "'{'")?;
        let names = self.comma_list(Self::string)?;
        self.expect(Kind::CloseBrace, "'}'")?;
        match slot {
            Some(Access::All) => return self.failed_argument("All has been set"),
            Some(Access::Only(list)) => list.extend(names),
            None => *slot = Some(Access::Only(names)),
        }
        Ok(())
    }

    fn failed_argument(&self, refusal: &str) -> Res<()> {
        self.rule(format!(
            "Failed parsing statement: [{}] reason: IllegalArgumentException {refusal}",
            crate::redacted(self.text)
        ))
    }

    pub(super) fn create_user(&mut self) -> Res<Statement> {
        self.expect_words(&[K::Create, K::User])?;
        let if_not_exists = self.if_not_exists()?;
        let name = self.unfolded_name(NO_QUOTED_USER)?;
        let mut options = self.user_options()?;
        options.login = Some(true);
        options.superuser.get_or_insert(false);
        Ok(role(RoleStatement::Create(CreateRole { name, if_not_exists, options })))
    }

    pub(super) fn alter_user(&mut self) -> Res<Statement> {
        self.expect_words(&[K::Alter, K::User])?;
        let if_exists = self.if_exists()?;
        let name = self.unfolded_name(NO_QUOTED_USER)?;
        let options = self.user_options()?;
        Ok(role(RoleStatement::Alter(AlterRole { name, if_exists, options })))
    }

    pub(super) fn drop_user(&mut self) -> Res<Statement> {
        self.expect_words(&[K::Drop, K::User])?;
        let if_exists = self.if_exists()?;
        let name = self.unfolded_name(NO_QUOTED_USER)?;
        Ok(role(RoleStatement::Drop(DropRole { name, if_exists })))
    }

    /// `[WITH [HASHED] PASSWORD 'p'] [SUPERUSER | NOSUPERUSER]`.
    fn user_options(&mut self) -> Res<RoleOptions> {
        let mut options = RoleOptions::default();
        if self.eat_word(K::With) {
            if self.eat_word(K::Hashed) {
                self.expect_word(K::Password)?;
                options.hashed_password = Some(Secret(self.string()?));
            } else if self.eat_word(K::Password) {
                options.password = Some(Secret(self.string()?));
            } else {
                return self.no_viable();
            }
        }
        if self.eat_word(K::Superuser) {
            options.superuser = Some(true);
        } else if self.eat_word(K::Nosuperuser) {
            options.superuser = Some(false);
        }
        Ok(options)
    }

    pub(super) fn add_identity(&mut self) -> Res<Statement> {
        self.expect_words(&[K::Add, K::Identity])?;
        let if_not_exists = self.if_not_exists()?;
        let identity = self.unfolded_name(NO_QUOTED_IDENTITY)?;
        self.expect_words(&[K::To, K::Role])?;
        let role = self.unfolded_name(NO_QUOTED_IDENTITY)?;
        Ok(self::role(RoleStatement::AddIdentity(AddIdentity { identity, role, if_not_exists })))
    }

    pub(super) fn drop_identity(&mut self) -> Res<Statement> {
        self.expect_words(&[K::Drop, K::Identity])?;
        let if_exists = self.if_exists()?;
        let identity = self.unfolded_name(NO_QUOTED_IDENTITY)?;
        Ok(role(RoleStatement::DropIdentity(DropIdentity { identity, if_exists })))
    }
}
