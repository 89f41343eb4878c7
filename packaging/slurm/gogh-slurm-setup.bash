# Bash completion for gogh-slurm-setup.

_gogh_slurm_setup() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    case "$before" in
    --conf | --gate) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    --partition | --nodes | --reports | --user) COMPREPLY=() ;;
    *)
        mapfile -t COMPREPLY < <(compgen -W '--conf --partition --nodes --typed --reports --user --gate --apply --check
            --remove --help' -- "$word")
        ;;
    esac
}
complete -F _gogh_slurm_setup gogh-slurm-setup
